package cluster_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/clustertest"
	"github.com/bmqelect/bmqelect/elector/detector"
	"github.com/bmqelect/bmqelect/internal/memnet"
)

// What a follower promises counts the mean delay, is the bound for links that keep order, and
// does not suffer from what was sent between two links.
func TestAFollowerPromisesWhatTCPCanKeep(t *testing.T) {
	ask := detector.QoS{
		Detect: 8 * time.Second, Mistakes: detector.Recurrence(time.Hour), Accuracy: 0.99,
	}
	const delay = 10 * time.Millisecond
	delayed := clustertest.Network(func(n *memnet.Network) {
		n.Delay(func(string, string) time.Duration { return delay },
			func() time.Duration { return 0 })
	})
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		time.Sleep(15 * time.Minute)
		leader := c.leader()
		follower := c.Node(c.others(leader)[0])
		q := *follower.Status().Groups[0].QoS
		require.Equal(t, ask, q.Asked)
		require.True(t, q.Met, q.Unmet)
		require.InDelta(t, delay.Seconds(), float64(q.Delay), 1e-4)
		require.InDelta(t, ask.Detect.Seconds(), float64(q.Detect), 1e-6)
		margin := q.Detect - q.Delay - q.Period
		bound := q.Period * margin * margin / (q.Deviation * q.Deviation)
		require.InEpsilon(t, float64(bound), float64(q.Mistakes), 1e-4)

		c.Cut(leader.ID(), follower.ID()) // for longer than a period
		follower.Mesh().Disconnect(leader.ID(), "test")
		time.Sleep(4 * time.Second)
		c.Heal()
		time.Sleep(15 * time.Minute)
		require.Equal(t, leader.ID(), c.leader().ID())
		after := follower.Status().Groups[0].QoS
		require.InEpsilon(t, float64(q.Deviation), float64(after.Deviation), 1e-9)
		require.Less(t, after.Loss, q.Loss, "none was lost by a link")
	}, delayed, clustertest.Configure(func(cfg *cluster.Config) { cfg.Election.QoS = ask }))
}
