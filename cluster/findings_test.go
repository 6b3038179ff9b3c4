package cluster_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/clustertest"
	"github.com/bmqelect/bmqelect/cluster/findings"
)

func TestStatusNamesWhatDiffersBetweenMembers(t *testing.T) {
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		time.Sleep(time.Second)
		found := c.Node("a").Status().Findings
		require.Len(t, found, 2, "%v", found)
		require.Equal(t, findings.VotersDiffer, found[0].Kind)
		require.Equal(t, cluster.NodeID("b"), found[0].Peer)
		require.Contains(t, found[0].Detail, "d")
		require.Equal(t, findings.SettingsDiffer, found[1].Kind)
		require.Contains(t, found[1].Detail, "1.2s")
		require.NotEmpty(t, c.Node("b").Status().Findings)
		require.NotEmpty(t, c.Node("c").Status().Findings)
	}, clustertest.Configure(func(cfg *cluster.Config) {
		switch cfg.Node {
		case "b":
			cfg.Voters = []cluster.NodeID{"a", "b", "d"}
		case "c":
			cfg.Election.Timing = article
			cfg.Election.Timing.Lease = 1200 * time.Millisecond
		}
	}))
}

func TestNothingIsFoundWhereAllIsWell(t *testing.T) {
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		time.Sleep(time.Minute)
		for _, n := range c.nodes() {
			require.Empty(t, n.Status().Findings)
		}
	})
}
