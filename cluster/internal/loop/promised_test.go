package loop

import (
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/elector/pair"
	"github.com/bmqelect/bmqelect/internal/base/clock"
	"github.com/bmqelect/bmqelect/internal/memnet"
	"github.com/bmqelect/bmqelect/lsn"
)

// §16.3, §16.9: an election joined while no beats came, and the first one empties the set. The
// answer must not speak for that election: this beat was no promise for it.
func TestAnAnswerNamesTheSetThatItPromises(t *testing.T) {
	elections := numbered(1)
	withLiar(t, elections, func(t *testing.T, all []*member, l *liar) {
		a, name, timing := all[0], elections[0], elector.Article()
		stay(t, all, name)
		l.follow(t, all[:1], elections)
		var read uint64
		newest := func(b *pair.Beat) { read = b.Revision }
		every(period, 3*time.Second, func() { l.beat(a, newest) })
		l.beat(a, newest)
		time.Sleep(timing.Inactivity() + 20*time.Millisecond)
		require.Zero(t, a.followed("c"), "it suspects its leader")
		l.claim(a, name)
		time.Sleep(200 * time.Millisecond)
		require.Equal(t, 1, a.followed("c"))

		came := a.Now()
		_, before := l.said()
		l.beat(a, func(b *pair.Beat) { b.Revision, b.Hash = read, 0 })
		time.Sleep(time.Millisecond)
		changes, acks := l.said()
		require.Len(t, acks, len(before)+1)
		ack, leads := acks[len(before)], pair.NewLeader()
		for _, c := range changes {
			require.True(t, c.Revision > ack.Revision || leads.Read(c))
		}
		for leads.Beat(elector.Time(ack.SentAt), period, 0).Sequence < ack.Sequence {
		}
		require.True(t, leads.Acked(ack))
		a.view(func(d *Driver) {
			d.step(d.groups[name], elector.Tick{})
			until := d.groups[name].machine.State().Promise.Until
			require.Less(t, until, came.Add(timing.Promise()))
		})
		require.Zero(t, leads.Support(name, 1))
	})
}

// stay lets nobody stand in an election.
func stay(t *testing.T, all []*member, name string) {
	for _, m := range all {
		_, err := lookup(t, m, name).SetCandidate(false)
		require.NoError(t, err)
	}
}

// ticking is a clock that moves on with each reading, as real ones do.
type ticking struct {
	clock.Clock

	readings atomic.Int64
}

func (c *ticking) Now() time.Duration { return c.Clock.Now() + time.Duration(c.readings.Add(1)) }

// §16.5: a set that was emptied because the other end reads nothing fills again by heartbeats only.
func TestAnEmptiedSetIsEmpty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		elections := numbered(10)
		all := meetWith(t, memnet.New(), &ticking{Clock: clock.Process()}, abc, elections...)
		time.Sleep(40 * time.Second)
		leads := leader(t, all, elections[0])
		follows := all[0]
		if follows == leads {
			follows = all[1]
		}
		drop := func(elector.NodeID, pair.Change) bool { return true }
		follows.lossy.dropChange.Store(&drop)
		follows.view(func(d *Driver) {
			d.sessions[leads.id].follows.Join("other", 7, false)
			require.Greater(t, d.sessions[leads.id].follows.Len(), 1)
		})
		emptied := false
		every(time.Millisecond, 3*time.Second, func() {
			follows.view(func(d *Driver) {
				if s := d.sessions[leads.id]; s.emptied != 0 {
					require.True(t, emptied || s.follows.Len() == 0)
					emptied = true
				}
			})
		})
		require.True(t, emptied)
	})
}

// §16.4: the process stops while the driver counts an ack, after it has read the clock. A lease
// that ended meanwhile, for all to see, does not come back.
func TestALeaseThatHasEndedStaysEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &passing{Clock: clock.Process()}
		all := meetWith(t, memnet.New(), c, abc, "e0000")
		time.Sleep(40 * time.Second)
		leads := leader(t, all, "e0000")
		now := time.Duration(leads.Now())
		time.Sleep(now.Truncate(period) + 2*period - now - 20*time.Millisecond)
		leads.view(func(d *Driver) {
			e := d.groups["e0000"]
			require.NotNil(t, e.lease)
			acks := map[*session]pair.Ack{}
			for _, s := range d.sessions {
				b := s.leads.Beat(d.Now(), s.period, 0)
				acks[s] = pair.Ack{Sequence: b.Sequence, SentAt: b.SentAt, Revision: b.Revision}
			}
			c.ahead.Store(int64(e.LeaseEnd().Sub(d.Now()) + time.Millisecond))
			for s, ack := range acks {
				require.False(t, e.Leading())
				d.acked(s, ack)
				require.False(t, e.Leading())
			}
			d.tick()
			require.Zero(t, e.leadTerm)
			c.ahead.Store(0)
		})
	})
}

// §16.4: an ack comes before the lease of a leader that is not quiet ends. Then the driver is held
// up before that leader has its turn, and others see the lease end.
func TestALeaseOfItsOwnThatHasEndedStaysEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &passing{Clock: clock.Process()}
		all := meetWith(t, memnet.New(), c, abc, "e0000")
		time.Sleep(40 * time.Second)
		leads := leader(t, all, "e0000")
		now := time.Duration(leads.Now())
		time.Sleep(now.Truncate(period) + 2*period - now - 20*time.Millisecond)
		leads.view(func(d *Driver) {
			g := d.groups["e0000"]
			d.step(g, elector.Covered{}) // anything is under way
			require.Nil(t, g.lease)
			c.ahead.Store(int64(g.LeaseEnd().Sub(d.Now()) - time.Millisecond))
			for _, s := range d.sessions {
				b := s.leads.Beat(d.Now(), s.period, 0)
				d.acked(s, pair.Ack{Sequence: b.Sequence, SentAt: b.SentAt, Revision: b.Revision})
			}
			require.True(t, g.Leading())
			c.ahead.Add(int64(2 * time.Millisecond))
			require.False(t, g.Leading())
			d.tick()
			require.False(t, g.Leading())
			require.Zero(t, g.leadTerm)
			c.ahead.Store(0)
		})
	})
}

// §16.4: all voters that follow back a lease, also those that joined before any beat was answered.
// It does not end while one of them is silent.
func TestALeaseOutlastsEachOfItsBackers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := memnet.New()
		all := meet(t, net, abc)
		time.Sleep(20 * time.Second)
		leads := leader(t, all, "first")
		for _, silent := range all {
			if silent == leads {
				continue
			}
			leads.view(func(d *Driver) { require.Len(t, d.groups["first"].lease.backers, 2) })
			net.Filter(string(silent.id), string(leads.id), memnet.Drop)
			every(10*time.Millisecond, 5*time.Second, func() {
				require.Greater(t, leads.first(t).LeaseEnd().Sub(leads.Now()), period)
			})
			net.Filter(string(silent.id), string(leads.id), memnet.Pass)
			time.Sleep(20 * time.Second)
		}
	})
}

// A leader whose lease never ends need not learn of acks at once, and holds up nobody that must.
func TestALeaderWithoutOtherVotersIsNotLoud(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := meet(t, memnet.New(), abc[:1], numbered(3)...)[0]
		time.Sleep(10 * time.Second)
		a.view(func(d *Driver) {
			require.NotZero(t, d.groups["e0002"].leadTerm)
			require.Empty(t, d.loud)
		})
	})
}

// §16.8: a node that leads others with longer timers is elected in one with short ones: the next
// beat must not come after that lease has ended.
func TestAFastElectionBesideSlowOnesKeepsItsLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := meet(t, memnet.New(), abc, numbered(3)...)
		time.Sleep(40 * time.Second)
		slow := leader(t, all, "e0000")
		for _, m := range all {
			_, err := m.Open("fast", Setup{Elector: elector.Config{
				Self: m.id, Voters: abc, Timing: elector.LAN(), NotCandidate: m != slow,
			}, StopMargin: time.Millisecond})
			require.NoError(t, err)
		}
		time.Sleep(10 * time.Second)
		require.Equal(t, uint64(1), slow.Snapshot(lookup(t, slow, "fast")).Leaderships)
	})
}

// §16.9: beats come for elections with long timers alone. A change that crosses one of them is not
// lost, although there were elections with short timers, too.
func TestAChangeThatCrossesASlowBeatIsNotLost(t *testing.T) {
	elections := numbered(1)
	withLiar(t, elections, func(t *testing.T, all []*member, l *liar) {
		a := all[0]
		stay(t, all, elections[0])
		_, err := a.Open("fast", Setup{Elector: elector.Config{
			Self: "a", Voters: abc, Timing: elector.LAN(),
		}, StopMargin: time.Millisecond})
		require.NoError(t, err)
		time.Sleep(time.Second)
		l.claim(a, elections...)
		l.Send(a.id, "fast", elector.Message{Kind: elector.LeaderHeartbeat, Term: 1, Sequence: 1,
			SentAt: 1, Period: elector.LAN().HeartbeatBroadcast})
		time.Sleep(time.Millisecond)
		var read pair.Beat
		every(period, 5*time.Second, func() { l.beat(a, func(b *pair.Beat) { read = *b }) })
		require.Equal(t, 1, a.followed("c"), "the fast one has given up its leader")
		a.view(func(d *Driver) {
			s := d.sessions["c"]
			require.Len(t, s.watchers, 2)
			c, _ := s.follows.Join("other", 7, false)
			d.Mesh.Change(s.peer, s.number, []pair.Change{c})
		})
		time.Sleep(period - time.Millisecond)
		l.beat(a, func(b *pair.Beat) { b.Revision, b.Hash = read.Revision, read.Hash })
		time.Sleep(time.Millisecond)
		require.Equal(t, 2, a.followed("c"))
	})
}

// reads lets the driver read of the other end of each session that it leaves an election, or joins
// it in a term.
func (d *Driver) reads(name string, what pair.What, term lsn.Term) {
	for _, s := range d.sessions {
		d.changed(s, pair.Change{What: what, Group: name, Term: term, Revision: s.leads.Revision() + 1})
	}
}

// §16.4: a lease that was shown ends no earlier because its only backer leaves the set.
func TestALeaseThatWasShownStaysWhenItsBackerLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := memnet.New()
		all := meet(t, net, abc, "e0000")
		time.Sleep(40 * time.Second)
		at := slices.Index(all, leader(t, all, "e0000"))
		leads := all[at]
		net.Kill(string(all[(at+1)%3].id))
		time.Sleep(20 * time.Second)
		leads.view(func(d *Driver) { d.step(d.groups["e0000"], elector.Tick{}) })
		time.Sleep(period + 40*time.Millisecond) // one more beat was acknowledged
		leads.view(func(d *Driver) {
			g := d.groups["e0000"]
			shown := g.LeaseEnd()
			require.Less(t, g.machine.Lease().End, shown)
			d.reads(g.Name, pair.Leave, 0)
			require.Equal(t, shown, g.LeaseEnd())
		})
	})
}

// §16.4: an acknowledgement by datagram overtakes the join on the stream. It counts for the lease
// that is shown, and for the one that the leader has later.
func TestALeaseOfItsOwnIsNoShorterThanTheSharedOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &passing{Clock: clock.Process()}
		all := meetWith(t, memnet.New(), c, abc, "e0000")
		time.Sleep(40 * time.Second)
		leads := leader(t, all, "e0000")
		leads.view(func(d *Driver) {
			g := d.groups["e0000"]
			term := g.leadTerm
			d.reads(g.Name, pair.Leave, 0)
			require.Nil(t, g.lease)
			c.ahead.Store(int64(300 * time.Millisecond))
			for _, s := range d.sessions {
				b := s.leads.Beat(elector.Time(c.Now()), s.period, 0)
				d.acked(s, pair.Ack{Sequence: b.Sequence, SentAt: b.SentAt, Revision: b.Revision})
			}
			d.step(g, elector.Tick{}) // it knows of the acknowledgement, which does not count for it yet
			d.reads(g.Name, pair.Join, term)
			require.NotNil(t, g.lease)
			shown := g.LeaseEnd()
			d.step(g, elector.Covered{}) // anything is under way
			require.Nil(t, g.lease)
			require.Equal(t, shown, g.LeaseEnd())
			c.ahead.Store(0)
		})
	})
}
