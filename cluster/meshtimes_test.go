package cluster

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/netmesh"
)

func TestTimesOfTheMeshFollowTheElection(t *testing.T) {
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		heartbeat                                     time.Duration
		miss                                          int
		idle, ping, dial, redialMax, redialMin, shake time.Duration
	}{
		"blazingmq: the defaults": {2000 * ms, 10, 3000 * ms, 1000 * ms, 2000 * ms, 2000 * ms, 50 * ms, 2000 * ms},
		"article":                 {500 * ms, 3, 3000 * ms, 1000 * ms, 750 * ms, 750 * ms, 50 * ms, 1500 * ms},
		"fast":                    {20 * ms, 5, 200 * ms, 200 * ms / 3, 50 * ms, 50 * ms, 5 * ms, 100 * ms},
		"absurd":                  {ms, 3, 100 * ms, 100 * ms / 3, 50 * ms, 10 * ms, ms, 100 * ms},
	} {
		t.Run(name, func(t *testing.T) {
			var got netmesh.Config
			meshTimes(&got, elector.Timing{HeartbeatBroadcast: c.heartbeat, HeartbeatMissCount: c.miss})
			require.Equal(t, netmesh.Config{
				IdleTimeout: c.idle, PingInterval: c.ping, DialTimeout: c.dial,
				RedialMax: c.redialMax, RedialMin: c.redialMin, HandshakeTimeout: c.shake,
			}, got)
			got.Cluster, got.Node, got.Identity, got.Boot, got.Bind = "c", "a", [16]byte{1}, 1, "a:1"
			require.NoError(t, got.Validate())
		})
	}
}

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
			if l.State == netmesh.LinkIsUp {
				up++
			}
		}
	}
	return up
}
