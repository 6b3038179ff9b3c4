package cluster

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster/internal/testhook"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/base/clock"
)

// leaping is a clock that leaps forward, as a process sees it that was stopped: its
// timers find out later.
type leaping struct {
	clock.Clock
	ahead atomic.Int64
}

func (c *leaping) Now() time.Duration { return c.Clock.Now() + time.Duration(c.ahead.Load()) }

// startLeaping starts nodes with clocks that can leap.
func (w *world) startLeaping(ids ...NodeID) map[NodeID]*leaping {
	clocks := map[NodeID]*leaping{}
	for _, id := range ids {
		clocks[id] = &leaping{Clock: clock.Process()}
		s := testhook.From(w.context(id))
		s.Clock = clocks[id]
		n, err := Start(testhook.With(context.Background(), s), w.config(id))
		require.NoError(w.t, err)
		w.nodes[id] = n
	}
	return clocks
}

// A process that was stopped beyond the end of its lease finds out late. Its deadline
// is still the end of the lease, not the moment of its waking.
func TestTheDeadlineOfAPausedLeaderIsTheEndOfItsLease(t *testing.T) {
	playSeeds(t, 20, func(w *seededWorld) { // who wakes first, driver or watcher, is chance
		clocks := w.startLeaping("a", "b", "c")
		w.record()
		o := w.campaign("a", "b", "c")
		l := o.next()
		time.Sleep(time.Second + w.dice.upTo(time.Second))
		const pause = 4 * time.Second
		before := l.Deadline()
		clocks[l.node().cfg.Node].ahead.Add(int64(pause))
		<-l.Context().Done()
		require.LessOrEqual(w.t, l.Deadline(), before.Add(-pause), "the lease ended during the pause")
		require.False(w.t, l.Valid())
		w.endRecord()
		l.Release()
		o.closeAll()
	})
}

// The lease of a node is renewed while its work stops, but not the time of the work: it is
// over at its deadline, before anybody has looked at the clock.
func TestStoppingWorkIsNotValidAfterItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		clocks := w.startLeaping("a", "b", "c")
		o := w.campaign("a", "b", "c")
		l := o.next()
		l.giveUp()
		end := l.Deadline()
		time.Sleep(600 * time.Millisecond)
		require.True(t, l.Valid())
		clocks[l.node().cfg.Node].ahead.Add(int64(time.Until(end)))
		require.True(t, l.e.IsLeader(), "its lease was renewed")
		require.False(t, l.Valid())
		l.Release()
		o.closeAll()
	})
}

// judge holds deadlines against each other.
type judge struct {
	t    *testing.T
	mu   sync.Mutex
	past map[*Leadership]time.Time // what the deadline of an ended leadership was at last
}

// begins is told of each leadership right after it was won.
func (j *judge) begins(l *Leadership) {
	j.mu.Lock()
	now := time.Now()
	for old := range j.past {
		require.False(j.t, old.Deadline().After(now), "%s begins %s before the deadline of %s",
			l.node().cfg.Node, old.Deadline().Sub(now), old.node().cfg.Node)
	}
	j.mu.Unlock()
	go func() {
		<-l.Context().Done()
		j.mu.Lock()
		defer j.mu.Unlock()
		j.past[l] = l.Deadline()
	}()
}

func (j *judge) look() {
	j.mu.Lock()
	defer j.mu.Unlock()
	for l, before := range j.past {
		now := l.Deadline()
		require.False(j.t, now.After(before), "the deadline of %s has moved by %s", l.node().cfg.Node, now.Sub(before))
		j.past[l] = now
	}
}

// Whatever ends a leadership, its deadline never becomes later once its context has
// ended, and no work of another node begins before it.
func TestDeadlinesNeverMoveOnAndNeverOverlap(t *testing.T) {
	playSeeds(t, 6, func(w *seededWorld) { playDeadlines(w, 60) })
}

func playDeadlines(w *seededWorld, steps int) {
	t := w.t
	clocks := w.startLeaping("a", "b", "c")
	w.record()
	j := &judge{t: t, past: map[*Leadership]time.Time{}}
	o := w.campaign("a", "b", "c")
	for range steps {
		l := o.next()
		j.begins(l)
		time.Sleep(w.dice.upTo(2 * time.Second))
		ctx, cancel := context.WithTimeout(t.Context(), w.dice.upTo(time.Second))
		id := l.node().cfg.Node
		switch w.dice.pick(5) {
		case 0:
			clocks[id].ahead.Add(int64(w.dice.upTo(5 * time.Second)))
		case 1:
			l.e.Transfer(ctx, "")
		case 2:
			l.e.Resign(ctx)
		case 3:
			l.node().call(func() {
				heard := elector.Message{Kind: elector.LeaderHeartbeat, Term: l.Term() + 1, SentAt: 1}
				l.node().step(l.e.g, elector.Received{From: o.others(l.node())[0], Message: heard})
			})
		}
		cancel()
		for range 100 {
			j.look()
			time.Sleep(10 * time.Millisecond)
		}
		l.Release()
		o.join(l.node())
	}
	w.endRecord()
	for _, n := range w.nodes {
		n.Default().Resign(canceled)
	}
	w.closeAll()
	for len(o.won) > 0 {
		(<-o.won).Release()
	}
}

// lockedBuffer is a log that several goroutines write.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.b.String(), text)
}

func TestWorkThatIsOverdueIsReportedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		var log lockedBuffer
		w.edit = func(c *Config) { c.Logger = hclog.New(&hclog.LoggerOptions{Output: &log}) }
		w.start("a", "b", "c")
		time.Sleep(election)
		leader := w.leader()
		l, err := leader.Default().Campaign(t.Context())
		require.NoError(t, err)
		time.Sleep(time.Second)
		require.NoError(t, leader.Transfer(t.Context(), "")) // the work never stops
		<-l.Done()
		time.Sleep(time.Second)
		require.Equal(t, 1, log.count("guarded work has not stopped in time"))
		l.Release()
		w.closeAll()
	})
}

// Whoever waits for a hand-over may be late: what counts is how it ended, not who leads
// by then.
func TestAHandoverIsJudgedByHowItEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		w.start("a", "b", "c")
		time.Sleep(election)
		n := w.leader()
		to, g := w.others(n)[0], n.Default().g
		var ended *handoverEnd
		n.call(func() {
			n.step(g, elector.Transfer{To: to})
			ended = g.awaitHandoverEnd()
		})
		<-ended.reached
		time.Sleep(time.Second)
		require.NoError(t, w.nodes[to].Transfer(t.Context(), n.cfg.Node))
		require.True(t, n.IsLeader(), "it leads again")
		require.False(t, ended.leads, "but it had handed over")
		w.closeAll()
	})
}
