package loop

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/elector/pair"
	"github.com/bmqelect/bmqelect/internal/base/clock"
	"github.com/bmqelect/bmqelect/internal/memnet"
)

// invites lets messages open elections of all names on a member, up to a limit.
func invites(m *member, limit int) {
	m.view(func(d *Driver) {
		d.GuestIdle, d.GuestLimit = time.Hour, limit
		d.Prefixed = func(string) (Setup, bool) {
			c := elector.Config{Self: m.id, Voters: abc, Timing: elector.Article()}
			return Setup{Elector: c, StopMargin: ms}, true
		}
	})
}

// §16.1: a member may not open elections by their prefix, because it has as many guests as it may
// have, or has closed them a moment ago. Their leaders send it no heartbeats until it may.
func TestWhoMayNotOpenElectionsGetsNoHeartbeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		elections, net := numbered(100), memnet.New()
		outside := startMember(t, net, clock.Process(), "d", abc)
		invites(outside, 0)
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
	for name, closes := range map[string]func(*Driver){
		"the election": func(d *Driver) { d.shut["job"] = d.Now().Add(shutTime) },
		"the node":     func(d *Driver) { d.leaving = true },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := startMember(t, memnet.New(), clock.Process(), "a", abc)
				invites(m, 1)
				m.view(func(d *Driver) {
					d.ending["job"] = true
					d.handle(&event{from: "b", group: "job", msg: elector.Message{
						Kind: elector.LeaderHeartbeat, Term: 7, Sequence: 1, SentAt: 1,
					}})
					require.True(t, d.opening["job"])
					closes(d)
				})
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

// A leader that makes a set begin anew again and again fills no list.
func TestAnAbsenceIsKeptOnce(t *testing.T) {
	withLiar(t, nil, func(t *testing.T, all []*member, l *liar) {
		invites(all[0], 0)
		for range 10 {
			l.claim(all[0], "job")
			time.Sleep(2 * ms)
			l.change(all[0], pair.Change{What: pair.Begin})
			time.Sleep(2 * ms)
		}
		all[0].view(func(d *Driver) { require.Len(t, d.absences, 1) })
	})
}

// The same on a node that takes part in nothing any more.
func TestWhoTakesPartInNothingGetsNoHeartbeats(t *testing.T) {
	for name, end := range map[string]func(*Driver){
		"failed":  func(d *Driver) { d.Fail(errors.New("the disk is full")) },
		"leaving": func(d *Driver) { d.leaving = true },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				net := memnet.New()
				outside := startMember(t, net, clock.Process(), "d", abc)
				invites(outside, 1000)
				outside.view(end)
				all := meet(t, net, abc, numbered(20)...)
				for _, m := range all {
					outside.mesh.AddPeer(m.id, string(m.id)+":7000")
				}
				time.Sleep(40 * time.Second)
				for _, m := range all {
					m.view(func(d *Driver) { require.Empty(t, d.loud) })
				}
			})
		})
	}
}
