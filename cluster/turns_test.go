package cluster_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/clustertest"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/memnet"
)

// A node measures round trips, and tells the elections that stand in turn, those too that
// are opened later. The next leads a few round trips after the leader's death: more than one
// if some have its proof, which they are to believe by themselves, before the others do.
func TestNodesThatStandInTurnNeedRoundTripsOnly(t *testing.T) {
	const oneWay = 10 * time.Millisecond
	inTurn := elector.Article()
	inTurn.MinRandomWait = time.Millisecond
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		time.Sleep(election)
		later := map[cluster.NodeID]*cluster.Election{}
		for id, n := range c.nodes() {
			e, err := n.Election("later", cluster.ElectionConfig{Timing: inTurn})
			require.NoError(t, err)
			later[id] = e
		}
		time.Sleep(election)
		require.Equal(t, cluster.NodeID("c"), c.leader().ID(), "the first in line by ID")
		require.Equal(t, cluster.NodeID("c"), c.leader("later").ID())
		for range 10 {
			old := c.leader().ID()
			c.Crash(old)
			time.Sleep(30 * oneWay) // a tenth of the longest random wait
			c.leader()
			c.Start(old)
			time.Sleep(election)
		}
	}, clustertest.Configure(func(cfg *cluster.Config) { cfg.Election.Timing = inTurn }),
		clustertest.Network(func(net *memnet.Network) {
			net.Delay(func(string, string) time.Duration { return oneWay },
				func() time.Duration { return 0 })
		}))
}
