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
// inactivity interval, and a silent link ends within two.
func TestFastTimersAreNotHeldUpByTheMesh(t *testing.T) {
	timing := elector.Timing{
		InitialWait: 320 * time.Millisecond, MaxRandomWait: 40 * time.Millisecond,
		ScoutingResult: 160 * time.Millisecond, ElectionResult: 160 * time.Millisecond,
		HeartbeatBroadcast: 20 * time.Millisecond, HeartbeatMissCount: 5,
		Lease: 80 * time.Millisecond, ClockDriftPPM: 20_000,
	}
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		time.Sleep(election)
		for i := range 20 {
			for id := range c.nodes() {
				c.Isolate(id)
			}
			time.Sleep(2*timing.Inactivity() + timing.HeartbeatBroadcast)
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
