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

// A message opens an election that has just been closed, for which the disk is read. Meanwhile it
// is closed on all nodes, or the node is closed.
func TestWhatIsClosedWhileTheDiskIsReadStaysClosed(t *testing.T) {
	for name, closes := range map[string]func(*member){
		"the election": func(m *member) { m.Shut("job") },
		"the node":     func(m *member) { m.view(func(d *Driver) { d.leaving = true }) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := startMember(t, memnet.New(), clock.Process(), "a", abc)
				m.view(func(d *Driver) {
					d.GuestIdle, d.GuestLimit = time.Hour, 1
					d.Prefixed = func(string) (Setup, bool) {
						c := elector.Config{Self: "a", Voters: abc, Timing: elector.Article()}
						return Setup{Elector: c, StopMargin: ms}, true
					}
					d.ending["job"] = true
					d.handle(&event{from: "b", group: "job", msg: elector.Message{
						Kind: elector.LeaderHeartbeat, Term: 7, Sequence: 1, SentAt: 1,
					}})
					require.True(t, d.opening["job"])
				})
				closes(m)
				time.Sleep(time.Second)
				m.view(func(d *Driver) {
					require.Empty(t, d.opening)
					require.Nil(t, d.groups["job"])
					require.Empty(t, d.guests)
					delete(d.ending, "job")
				})
			})
		})
	}
}
