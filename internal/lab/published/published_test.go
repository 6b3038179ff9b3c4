package published

import (
	"flag"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/sim"
)

var update = flag.Bool("update", false,
	"write the files of figures anew; the study of Omega takes some minutes")

// members are n names.
func members(n int) (ids []elector.NodeID) {
	for i := range n {
		ids = append(ids, elector.NodeID(fmt.Sprintf("n%02d", i)))
	}
	return ids
}

// start makes a cluster of voters with the same settings.
func start(t testing.TB, cfg sim.Config, ids []elector.NodeID, each elector.Config) *sim.Sim {
	each.Voters = ids
	for _, each.Self = range ids {
		cfg.Nodes = append(cfg.Nodes, sim.NodeConfig{Elector: each})
	}
	s, err := sim.New(cfg)
	require.NoError(t, err)
	return s
}
