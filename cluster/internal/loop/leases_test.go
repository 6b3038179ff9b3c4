package loop

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/base/clock"
	"github.com/bmqelect/bmqelect/internal/memnet"
)

// A leader that has to send heartbeats to one member, here to an observer, hears of beats that
// others acknowledge at once, not at its next heartbeat: its work would be told to stop meanwhile.
func TestAnAckedBeatExtendsTheLeaseAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net, timing := memnet.New(), elector.Article()
		all := meet(t, net, abc)
		d := startWith(t, net, clock.Process(), "d", nil, timing)
		for _, m := range all {
			m.mesh.AddPeer("d", "d:7000")
			d.mesh.AddPeer(m.id, string(m.id)+":7000")
		}
		time.Sleep(40 * time.Second)
		leads := publish(t, all, "first", []byte("value"))
		time.Sleep(10 * time.Second)
		leads.view(func(d *Driver) { require.False(t, d.groups["first"].machine.Quiet()) })
		for range 1000 {
			time.Sleep(7 * time.Millisecond)
			left := leads.first(t).LeaseEnd().Sub(leads.Now())
			require.Greater(t, left, timing.Lease-timing.HeartbeatBroadcast-20*time.Millisecond)
		}
	})
}
