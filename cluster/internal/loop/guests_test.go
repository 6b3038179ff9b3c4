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

// §16.1: a member may not open elections by their prefix, because it has as many guests as it may
// have, or has closed them a moment ago. Their leaders send it no heartbeats until it may.
func TestWhoMayNotOpenElectionsGetsNoHeartbeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		elections, net := numbered(100), memnet.New()
		outside := startMember(t, net, clock.Process(), "d", abc)
		outside.view(func(d *Driver) {
			d.GuestIdle = time.Hour
			d.Prefixed = func(string) (Setup, bool) {
				return Setup{Elector: elector.Config{Self: "d", Voters: abc, Timing: elector.Article()},
					StopMargin: time.Millisecond}, true
			}
		})
		all := meet(t, net, abc, elections...)
		for _, m := range all {
			outside.mesh.AddPeer(m.id, string(m.id)+":7000")
		}
		quiet := func(why string) {
			came := outside.Uninvited[why].Load()
			require.Positive(t, came)
			time.Sleep(10 * time.Second)
			require.Equal(t, came, outside.Uninvited[why].Load(), "messages that were refused: %s", why)
		}
		open := func() (n int) {
			outside.view(func(d *Driver) { n = len(d.guests) })
			return n
		}
		looked := func() {
			outside.view(func(d *Driver) {
				for range 2 * looks {
					d.closeIdle()
				}
			})
			time.Sleep(time.Second)
		}
		time.Sleep(40 * time.Second)
		quiet("full")
		outside.view(func(d *Driver) { d.GuestLimit = 10 })
		looked()
		require.Equal(t, 10, open())
		outside.view(func(d *Driver) { d.GuestLimit = 1000 })
		looked()
		require.Equal(t, len(elections), open())

		for _, name := range elections {
			require.NoError(t, outside.CloseElection(t.Context(), lookup(t, outside, name)))
		}
		time.Sleep(5 * time.Second)
		quiet("shut")
		looked()
		require.Zero(t, open())
		time.Sleep(shutTime)
		looked()
		require.Equal(t, len(elections), open())
		outside.view(func(d *Driver) { require.Empty(t, d.absences) })
	})
}
