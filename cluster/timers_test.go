package cluster_test

import (
	"testing"
	"time"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/clustertest"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/elector/detector"
	"github.com/bmqelect/bmqelect/internal/memnet"
	"github.com/stretchr/testify/require"
)

// TestFastTimersAreNotHeldUpByTheMesh: after a heal everybody is connected within one
// inactivity interval, and a silent link ends within two of what is first left unanswered.
func TestFastTimersAreNotHeldUpByTheMesh(t *testing.T) {
	timing := elector.Timing{
		InitialWait: 320 * time.Millisecond, MaxRandomWait: 40 * time.Millisecond,
		ScoutingResult: 160 * time.Millisecond, ElectionResult: 160 * time.Millisecond,
		HeartbeatBroadcast: 20 * time.Millisecond, HeartbeatMissCount: 5,
		Lease: 80 * time.Millisecond, ClockDriftPPM: 20_000,
	}
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		leader := c.elect()
		for i := range 20 {
			for id := range c.nodes() {
				c.Isolate(id)
			}
			time.Sleep(2*timing.Inactivity() + 5*timing.HeartbeatBroadcast) // three by datagrams first
			if i == 0 {
				for _, l := range leader.Mesh().Links() {
					require.False(t, l.Up, "heartbeats to %s had no answer", l.Peer.Node)
				}
			}
			time.Sleep(2 * timing.Inactivity()) // all have asked all meanwhile
			require.Zero(t, c.links(), "silent links have ended")
			time.Sleep(5*time.Second + time.Duration(i)*47*time.Millisecond)
			c.Heal()
			time.Sleep(timing.Inactivity())
			require.Equal(t, 6, c.links(), "ends of links")
		}
	}, clustertest.Configure(func(cfg *cluster.Config) { cfg.Election.Timing = timing }))
}

// links counts the ends of links that are up.
func (c *testCluster) links() (up int) {
	for _, n := range c.nodes() {
		for _, l := range n.Mesh().Links() {
			if l.Up {
				up++
			}
		}
	}
	return up
}

// A node measures round trips, and tells all elections whose nodes stand in turn, also those that
// are opened later. The next node leads a few round trips after the leader's death. It takes more
// than one because the others may get their proof of the death later.
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

// The promise of a follower counts the mean delay, follows the bound for links that keep order, and
// is not changed by heartbeats that were sent while there was no link.
func TestAFollowerPromisesWhatTCPCanKeep(t *testing.T) {
	ask := detector.QoS{
		Detect: 8 * time.Second, Mistakes: detector.Recurrence(time.Hour), Accuracy: 0.99,
	}
	const delay = 10 * time.Millisecond
	delayed := clustertest.Network(func(n *memnet.Network) {
		n.Delay(func(string, string) time.Duration { return delay },
			func() time.Duration { return 0 })
	})
	asked := clustertest.Configure(func(cfg *cluster.Config) { cfg.Election.QoS = ask })
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		time.Sleep(15 * time.Minute)
		q := c.Node(c.others(c.leader())[0]).Status().Groups[0].QoS
		require.True(t, q.Met, q.Unmet)
		require.True(t, q.Independent, "beats come as datagrams")
	}, delayed, asked)
	stream := clustertest.Network(func(n *memnet.Network) {
		n.Lose(func(string, string) bool { return true }) // so beats go on the stream
	})
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		time.Sleep(15 * time.Minute)
		leader := c.leader()
		follower := c.Node(c.others(leader)[0])
		q := *follower.Status().Groups[0].QoS
		require.False(t, q.Independent)
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
	}, delayed, stream, asked)
}
