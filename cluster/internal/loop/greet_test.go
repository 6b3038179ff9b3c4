package loop

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/base/clock"
	"github.com/bmqelect/bmqelect/internal/memnet"
)

// §16.10: a node comes back to very many leaders. All lead on, few send heartbeats at a time, and
// they are quiet again long before that voter has settled. It counts as settled (§9.6) then.
func TestANodeThatComesBackIsGreetedInTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		elections := numbered(3 * mostLoud)
		net := memnet.New()
		net.Delay(func(string, string) time.Duration { return 10 * time.Millisecond }, nil)
		all := meet(t, net, abc, elections...)
		time.Sleep(40 * time.Second)
		net.Kill("a")
		alive := all[1:]
		time.Sleep(40 * time.Second)
		led := map[string]*member{}
		for _, name := range elections {
			led[name] = leader(t, alive, name)
			require.NotNil(t, led[name], name)
		}
		back := startMember(t, net, clock.Process(), "a", abc)
		for _, m := range alive {
			back.mesh.AddPeer(m.id, string(m.id)+":7000")
		}
		time.Sleep(10 * time.Second) // a member without the elections
		for _, name := range elections {
			_, err := back.Open(name, Setup{Elector: elector.Config{
				Self: "a", Voters: abc, Timing: elector.Article(),
			}})
			require.NoError(t, err)
		}
		most := 0
		for range 300 {
			time.Sleep(10 * time.Millisecond)
			for _, m := range alive {
				m.view(func(d *Driver) { most = max(most, len(d.loud)) })
			}
			name := elections[most%len(elections)]
			require.Equal(t, led[name], leader(t, alive, name))
		}
		require.Greater(t, most, mostLoud/2)
		require.LessOrEqual(t, most, mostLoud+batch)
		for _, m := range append(alive, back) {
			m.beats.take()
		}
		time.Sleep(time.Second)
		for _, m := range append(alive, back) {
			require.Empty(t, m.beats.take(), "heartbeats to %s", m.id)
		}
		time.Sleep(5 * time.Second)
		for _, m := range alive {
			m.view(func(d *Driver) {
				for _, name := range elections {
					if g := d.groups[name]; led[name] == m {
						require.NotZero(t, g.leadTerm, name)
						a := slices.Index(g.machine.Electorate(), elector.NodeID("a"))
						require.True(t, g.machine.State().Leader.Settled.Has(a), name)
					}
				}
			})
		}
		followed, mirrored := inSessions(append(alive, back))
		require.Equal(t, 2*(len(elections)+1), followed)
		require.Equal(t, followed, mirrored)
	})
}

// A leader whose lease needs the node that comes back greets it at once.
func TestWhoIsNeededIsGreetedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := memnet.New()
		all := meet(t, net, abc)
		time.Sleep(40 * time.Second)
		leads := leader(t, all, "first")
		at := slices.Index(all, leads)
		peer, other := all[(at+1)%3], all[(at+2)%3]
		waits := func() (n int) {
			leads.view(func(d *Driver) {
				d.linkUp(d.groups["first"], peer.id)
				n = len(d.greetings)
			})
			return n
		}
		require.Equal(t, 1, waits(), "the other one backs the lease")
		net.Kill(string(other.id))
		time.Sleep(20 * time.Second)
		require.Equal(t, leads, leader(t, []*member{leads, peer}, "first"))
		require.Zero(t, waits())
	})
}
