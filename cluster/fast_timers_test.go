package cluster_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/clustertest"
	"github.com/bmqelect/bmqelect/elector"
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
			time.Sleep(2*timing.Inactivity() + timing.HeartbeatBroadcast)
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
