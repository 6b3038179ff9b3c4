package cluster

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
)

func TestValidateNamesEveryMistakeAtOnce(t *testing.T) {
	err := Config{
		Node: "a b", Voters: []NodeID{"x", "x"}, GossipAddr: "7400", MeshAddr: "host:http",
		Join: []string{"b.example"}, Election: ElectionConfig{Quorum: 9},
	}.Validate()
	for _, part := range []string{
		`Node is "a b"`, `"x" twice`, "Election.Quorum is 9", "DataDir is empty, but must be",
		`GossipAddr is "7400"`, `MeshAddr is "host:http"`, `Join is "b.example"`,
	} {
		require.ErrorContains(t, err, part)
	}
	require.ErrorAs(t, err, new(*ConfigError))
}

func TestZeroElectionIsTheArticles(t *testing.T) {
	c := Config{Node: "a", Voters: []NodeID{"a"}, DataDir: "d"}
	require.NoError(t, c.Validate())
	require.Equal(t, elector.Article(), c.withDefaults().Election.Timing)
}
