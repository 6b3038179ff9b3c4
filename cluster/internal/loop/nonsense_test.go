package loop

import (
	"fmt"
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

// script is what a member says of the set that it follows.
type script struct {
	changes []pair.Change
}

// add adds the next change. Without a term it leaves.
func (s *script) add(what pair.What, name string, term lsn.Term) {
	next := uint64(1)
	if n := len(s.changes); n > 0 {
		next = s.changes[n-1].Revision + 1
	}
	s.changes = append(s.changes, pair.Change{What: what, Group: name, Term: term, Revision: next})
}

// told is how much all elections of a member were told.
func (m *member) told() (n int) {
	m.view(func(d *Driver) { n = d.toldBefore + len(d.news) })
	return n
}

// §16.5: a member says that it emptied its set, under a revision that was read before.
func TestASetThatWasEmptiedInThePastStays(t *testing.T) {
	elections := numbered(3 * batch)
	withLiar(t, elections, func(t *testing.T, all []*member, l *liar) {
		time.Sleep(40 * time.Second)
		a, before := all[0], terms(t, all...)
		var says script
		for i := range 5 * batch {
			says.add(pair.Join, fmt.Sprint("ghost", i), 1)
		}
		from := len(says.changes)
		for _, name := range elections {
			says.add(pair.Join, name, 1)
		}
		past := make([]pair.Change, 2000)
		for i := range past {
			past[i] = pair.Change{What: pair.Empty, Revision: 1}
		}
		l.change(a, slices.Concat(says.changes[:from], past, says.changes[from:])...)
		time.Sleep(10 * time.Second)
		a.view(func(d *Driver) { require.Equal(t, 5*batch+len(elections), d.sessions["c"].leads.Len()) })
		require.Equal(t, before, terms(t, all...))
	})
}

// §16.5: a member does not read what a node sends, or says so, again and again. If none of the
// node's elections is in the set, that costs them nothing.
func TestAnEmptySetIsEmptiedWithoutElections(t *testing.T) {
	elections := numbered(1)
	withLiar(t, elections, func(t *testing.T, all []*member, l *liar) {
		a := all[0]
		stay(t, all, elections[0])
		l.follow(t, all[:1], elections)
		var read pair.Beat
		every(period, 3*time.Second, func() { l.beat(a, func(b *pair.Beat) { read = *b }) })
		time.Sleep(elector.Article().Inactivity() + 20*time.Millisecond)
		require.Zero(t, a.followed("c"), "it suspects its leader")
		old := func(b *pair.Beat) { b.Revision, b.Hash = read.Revision, read.Hash }
		every(period, 4*time.Second, func() { l.beat(a, old) })

		before := a.told()
		changes, _ := l.said()
		every(time.Millisecond, period, func() { l.beat(a, old) })
		begins := make([]pair.Change, 10_000)
		for i := range begins {
			begins[i] = pair.Change{What: pair.Begin}
		}
		l.change(a, begins...)
		time.Sleep(10 * time.Millisecond)
		require.LessOrEqual(t, a.told()-before, 2)
		after, _ := l.said()
		require.GreaterOrEqual(t, len(after)-len(changes), len(begins), "each has its answer")
	})
}

// §16.5: changes of a node are lost that takes part in nothing that its peers lead. Its set fills
// again, and the leaders are quiet.
func TestWhoTakesNoPartFollowsAgainAfterALoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := memnet.New()
		all := meet(t, net, abc, numbered(20)...)
		outside := startMember(t, net, clock.Process(), "d", nil)
		require.NoError(t, outside.CloseElection(t.Context(), lookup(t, outside, "first")))
		var lost atomic.Int64
		drop := func(_ elector.NodeID, c pair.Change) bool {
			return c.What == pair.Observe && lost.Add(1) <= 3
		}
		outside.lossy.dropChange.Store(&drop)
		for _, m := range all {
			outside.mesh.AddPeer(m.id, string(m.id)+":7000")
		}
		time.Sleep(60 * time.Second)
		require.Less(t, int64(3), lost.Load())
		came := outside.Uninvited["no-prefix"].Load()
		time.Sleep(60 * time.Second)
		require.Equal(t, came, outside.Uninvited["no-prefix"].Load())
	})
}

// §16.10: a member that backs no lease leaves and comes back all the time. Each leader waits for
// its turn once.
func TestALeaderWaitsForATurnOnce(t *testing.T) {
	elections := numbered(8 * narrow)
	withLiar(t, elections, func(t *testing.T, all []*member, l *liar) {
		time.Sleep(40 * time.Second)
		a := all[0]
		led, says := terms(t, a), script{}
		require.Greater(t, len(led), narrow+batch)
		for name, term := range led {
			says.add(pair.Observe, name, term)
		}
		for range 20 {
			for name, term := range led {
				says.add(pair.Leave, name, 0)
				says.add(pair.Observe, name, term)
			}
		}
		most := 0
		for some := says.changes; len(some) > 0; some = some[min(len(some), 100):] {
			l.change(a, some[:min(len(some), 100)]...)
			time.Sleep(10 * time.Microsecond)
			a.view(func(d *Driver) { most = max(most, len(d.greetings.waiting)) })
		}
		require.Greater(t, most, narrow)
		require.LessOrEqual(t, most, len(led))
		require.Equal(t, led, terms(t, a))
	})
}
