package cluster

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
)

// TestFastTimersAreNotHeldUpByTheMesh: after a heal everybody is connected within one
// inactivity interval, and a silent link ends within two.
func TestFastTimersAreNotHeldUpByTheMesh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		timing := elector.Timing{
			InitialWait: 320 * time.Millisecond, MaxRandomWait: 40 * time.Millisecond,
			ScoutingResult: 160 * time.Millisecond, ElectionResult: 160 * time.Millisecond,
			HeartbeatBroadcast: 20 * time.Millisecond, HeartbeatMissCount: 5,
			Lease: 80 * time.Millisecond, ClockDriftPPM: 20_000,
		}
		w.edit = func(c *Config) { c.Election.Timing = timing }
		w.start("a", "b", "c")
		time.Sleep(election)
		for i := range 20 {
			for id := range w.nodes {
				w.isolate(id)
			}
			time.Sleep(2*timing.Inactivity() + timing.HeartbeatBroadcast)
			require.Zero(t, w.links(), "silent links have ended")
			time.Sleep(5*time.Second + time.Duration(i)*47*time.Millisecond)
			for id := range w.nodes {
				w.faults[id].HealAll()
			}
			time.Sleep(timing.Inactivity())
			require.Equal(t, 6, w.links(), "ends of links")
		}
	})
}

// links counts the ends of links that are up.
func (w *world) links() (up int) {
	for _, n := range w.nodes {
		for _, l := range n.mesh.Links() {
			if l.Up {
				up++
			}
		}
	}
	return up
}
