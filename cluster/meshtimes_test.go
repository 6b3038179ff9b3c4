package cluster

import (
	"testing"
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
