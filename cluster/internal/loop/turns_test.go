package loop

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster/internal/store"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/base/clock"
	"github.com/bmqelect/bmqelect/internal/memnet"
	"github.com/bmqelect/bmqelect/lsn"
	"github.com/bmqelect/bmqelect/netmesh"
)

// §16.10: a node comes back to very many leaders. All lead on, few send heartbeats at a time, and
// they are quiet again long before that voter has settled. It counts as settled (§9.6) then.
func TestANodeThatComesBackIsGreetedInTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		elections := numbered(24 * narrow)
		net := memnet.New()
		net.Delay(func(string, string) time.Duration { return 50 * time.Millisecond }, nil)
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
		require.Greater(t, most, narrow/2)
		require.LessOrEqual(t, most, narrow+batch)
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
				n = len(d.greetings.waiting)
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

// terms are those of all leaderships of some members.
func terms(t *testing.T, members ...*member) map[string]lsn.Term {
	led := map[string]lsn.Term{}
	for _, m := range members {
		m.view(func(d *Driver) {
			for _, g := range d.groups {
				if g.leadTerm != 0 {
					require.Zero(t, led[g.Name], "two lead %s", g.Name)
					led[g.Name] = g.leadTerm
				}
			}
		})
	}
	return led
}

// §16.10: a node that gives up very many leaderships does so in turns, so that few elections are
// without a leader at a time: more if all goes fast. Each changes its leader once.
func TestManyLeadershipsAreGivenUpInTurns(t *testing.T) {
	stops := func(m *member) { require.NoError(t, m.CloseAll(context.Background())) }
	unfit := func(m *member) { m.SetHealth("sick", 100*time.Millisecond) }
	const near, far = 10 * time.Millisecond, 100 * time.Millisecond
	for name, tc := range map[string]struct {
		giveUp func(*member)
		delay  time.Duration
		within time.Duration
		grows  bool
	}{
		"stops":       {stops, far, 2500 * time.Millisecond, false},
		"stops, near": {stops, near, 200 * time.Millisecond, true},
		"unfit":       {unfit, far, 3500 * time.Millisecond, false},
		"unfit, near": {unfit, near, 400 * time.Millisecond, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				elections := numbered(9 * narrow)
				net := memnet.New()
				net.Delay(func(string, string) time.Duration { return tc.delay }, nil)
				all := meet(t, net, abc, elections...)
				time.Sleep(40 * time.Second)
				before, moves, most := terms(t, all...), len(terms(t, all[0])), 0
				require.Len(t, before, len(elections)+1)
				require.Greater(t, moves, 2*narrow)
				var took time.Duration
				go tc.giveUp(all[0])
				for began := time.Now(); time.Since(began) < 5*time.Second; time.Sleep(5 * time.Millisecond) {
					if vacant := len(before) - len(terms(t, all...)); vacant > 0 {
						most, took = max(most, vacant), time.Since(began)
					}
				}
				require.Less(t, took, tc.within, "they do not wait longer than they must")
				require.Greater(t, most, narrow/4)
				require.LessOrEqual(t, most, 2*narrow)
				all[0].view(func(d *Driver) { require.Equal(t, tc.grows, d.cessions.most.size > narrow) })
				require.Empty(t, terms(t, all[0]))
				after := terms(t, all...)
				require.Len(t, after, len(before))
				for name, term := range after {
					require.LessOrEqual(t, term, before[name]+1, name)
					if term > before[name] {
						moves--
					}
				}
				require.Zero(t, moves)
			})
		})
	}
}

// A probe finds all nodes unfit, each time in other words, so leadership stays. Each election waits
// once to be given up. One that is to be closed meanwhile is closed.
func TestAnElectionWaitsForATurnToGiveUpOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		elections := numbered(9 * narrow)
		all := meet(t, memnet.New(), abc, elections...)
		time.Sleep(40 * time.Second)
		load := func(seconds int, nodes ...*member) {
			for i := range seconds {
				for _, m := range nodes {
					m.SetHealth(fmt.Sprintf("load %d", i), time.Second)
				}
				time.Sleep(time.Second)
			}
		}
		load(15, all...)
		for _, m := range all {
			led := len(terms(t, m))
			m.view(func(d *Driver) {
				require.LessOrEqual(t, len(d.cessions.waiting), led)
				require.Len(t, d.cessions.do, len(d.cessions.waiting))
			})
		}
		for _, m := range all[1:] {
			m.SetHealth("", 0)
		}
		go load(5, all[0])
		require.NoError(t, all[0].CloseAll(t.Context()))
		time.Sleep(20 * time.Second)
		require.Len(t, terms(t, all[1:]...), len(elections)+1)
	})
}

// A node whose successors say nothing hands over some in the time of an election, and the rest at
// once when it has no more time to stop.
func TestWhoMustStopNowHandsOverAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		elections := numbered(24 * narrow)
		net := memnet.New()
		all := meet(t, net, abc, elections...)
		a := all[0]
		time.Sleep(40 * time.Second)
		led := len(terms(t, a))
		require.Greater(t, led, 6*narrow)
		for _, m := range all[1:] {
			net.Filter(string(m.id), "a", memnet.Drop)
		}
		period := elector.Article().ElectionResult
		ctx, cancel := context.WithTimeout(context.Background(), period+period/2)
		defer cancel()
		go func() { require.NoError(t, a.CloseAll(ctx)) }()
		time.Sleep(period / 2)
		require.Len(t, terms(t, a), led-narrow)
		time.Sleep(period * 3 / 4)
		require.Len(t, terms(t, a), led-2*narrow)
		a.pace.each.Store(int64(2 * time.Millisecond))
		time.Sleep(period / 2)
		require.Empty(t, terms(t, a), "they go in batches")
		time.Sleep(10 * time.Second)
		for _, name := range elections {
			require.NotNil(t, leader(t, all[1:], name), name)
		}
	})
}

// Heartbeats name a successor, too, and give nothing up.
func TestOnlyACessionLeavesAnElectionVacant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := meet(t, memnet.New(), abc[:1])[0]
		a.view(func(d *Driver) {
			g := d.groups["first"]
			for _, m := range []elector.Message{
				{Kind: elector.LeaderHeartbeat, Successor: "b"}, {Kind: elector.LeadershipCession},
				{Kind: elector.LeadershipCession, Successor: "b"},
			} {
				d.noteCession(g, &m)
			}
			require.Empty(t, d.vacant, "nobody waits")
			d.cessions.waiting = []turn{{group: g}}
			d.noteCession(g, &elector.Message{Kind: elector.LeaderHeartbeat, Successor: "b"})
			d.noteCession(g, &elector.Message{Kind: elector.LeadershipCession})
			require.Empty(t, d.vacant)
			d.noteCession(g, &elector.Message{Kind: elector.LeadershipCession, Successor: "b"})
			require.Len(t, d.vacant, 1)
			d.cessions.waiting = nil
		})
	})
}

// More may do it at a time while it takes little of a lease, and half of them when it takes long.
func TestHowManyAtOnce(t *testing.T) {
	const lease, fast, middle, slow = 400 * time.Millisecond, 99 * time.Millisecond,
		150 * time.Millisecond, 201 * time.Millisecond
	n, now := atOnce{size: narrow}, elector.Time(1)
	take := func(times int, long time.Duration) int {
		for range times {
			now = now.Add(time.Millisecond)
			n.took(long, lease, now)
		}
		return n.size
	}
	require.Equal(t, narrow+10, take(10, fast))
	require.Equal(t, narrow+10, take(10, middle))
	require.Equal(t, wide, take(2*wide, fast))
	require.Equal(t, wide/2, take(200, slow), "once in half a lease")
	require.Equal(t, wide/4, take(1, slow))
	require.Equal(t, narrow, take(2000, slow))
	n.size = math.MaxInt // no time is left
	require.Equal(t, math.MaxInt, take(1, fast))
}

// §16.10: while acks are late, no more leaders greet within the time of those that have begun.
func TestGreetingsWaitWhileAcksAreLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := meet(t, memnet.New(), abc, numbered(3)...)
		time.Sleep(40 * time.Second)
		leader(t, all, "e0000").view(func(d *Driver) {
			g := &d.greetings
			g.most.size = wide // as another node came back
			g.wait(d, turn{group: d.groups["e0000"]}, nil)
			require.Equal(t, narrow, g.most.size)
			g.begun = narrow
			require.True(t, g.due(d.Now()))
			d.leases[0].end = d.Now().Add(elector.Article().Lease/2 - 1)
			require.False(t, g.due(d.Now()))
			require.True(t, g.due(g.until()))
			g.waiting = nil
		})
	})
}

// One write may be that of very many elections. The driver handles a batch at a time.
func TestAWriteOfManyIsNotOneEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := meet(t, memnet.New(), abc[:1])[0]
		written := groups{}
		for _, name := range numbered(20 * batch) {
			written[name] = store.Durable{}
		}
		a.view(func(*Driver) {
			go a.onPersisted(written, nil)
			synctest.Wait()
			require.GreaterOrEqual(t, a.InboxLength(), 20)
		})
	})
}

// A second proof of the same death tells nothing new.
func TestADeathIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := memnet.New()
		all := meet(t, net, abc)
		time.Sleep(40 * time.Second)
		net.Kill("a")
		time.Sleep(20 * time.Second)
		told := func() (n int) {
			all[1].view(func(d *Driver) { n = d.toldBefore + len(d.news) })
			return n
		}
		all[1].Died("a", elector.ProofReincarnated)
		before := told()
		all[1].Died("a", elector.ProofReincarnated)
		require.Equal(t, before, told())
		all[1].view(func(d *Driver) { // a voter that died, was removed, and comes back
			d.processes["removed"] = process{dead: true}
			d.noteProcess(&netmesh.PeerInfo{Node: "removed"})
		})
		all[1].Died("removed", elector.ProofReincarnated)
		require.Greater(t, told(), before)
	})
}
