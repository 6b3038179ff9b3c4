package cluster_test

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/clustertest"
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

// leapingClocks are clocks for nodes, and the option that makes the nodes use them.
func leapingClocks(ids []cluster.NodeID) (map[cluster.NodeID]*leaping, clustertest.Option) {
	clocks := map[cluster.NodeID]*leaping{}
	for _, id := range ids {
		clocks[id] = &leaping{}
	}
	return clocks, clustertest.Hooks(func(id cluster.NodeID, h *testhook.Hooks) {
		clocks[id].Clock = clock.Process() // of the bubble
		h.Clock = clocks[id]
	})
}

// A process that was stopped beyond the end of its lease finds out late. Its deadline
// is still the end of the lease, not the moment of its waking.
func TestTheDeadlineOfAPausedLeaderIsTheEndOfItsLease(t *testing.T) {
	playSeeds(t, 20, func(c *seededCluster) { // who wakes first, driver or watcher, is chance
		c.record()
		o := c.campaign("a", "b", "c")
		l := o.next()
		time.Sleep(time.Second + c.dice.UpTo(time.Second))
		const pause = 4 * time.Second
		before := l.Deadline()
		c.clocks[l.Node().ID()].ahead.Add(int64(pause))
		<-l.Context().Done()
		require.LessOrEqual(c.t, l.Deadline(), before.Add(-pause), "the lease ended during the pause")
		require.False(c.t, l.Valid())
		c.endRecord()
		l.Release()
	})
}

// The lease of a node is renewed while its work stops, but not the time of the work: it is
// over at its deadline, before anybody has looked at the clock.
func TestStoppingWorkIsNotValidAfterItsDeadline(t *testing.T) {
	clocks, useClocks := leapingClocks(three)
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		o := c.campaign("a", "b", "c")
		l := o.next()
		l.GiveUp()
		end := l.Deadline()
		time.Sleep(600 * time.Millisecond)
		require.True(t, l.Valid())
		clocks[l.Node().ID()].ahead.Add(int64(time.Until(end)))
		require.True(t, l.Election().IsLeader(), "its lease was renewed")
		require.False(t, l.Valid())
		l.Release()
	}, useClocks)
}

// judge holds deadlines against each other.
type judge struct {
	t    *testing.T
	mu   sync.Mutex
	past map[*cluster.Leadership]time.Time // what the deadline of an ended leadership was at last
}

// begins is told of each leadership right after it was won.
func (j *judge) begins(l *cluster.Leadership) {
	j.mu.Lock()
	now := time.Now()
	for old := range j.past {
		require.False(j.t, old.Deadline().After(now), "%s begins %s before the deadline of %s",
			l.Node().ID(), old.Deadline().Sub(now), old.Node().ID())
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
		require.False(j.t, now.After(before), "the deadline of %s has moved by %s", l.Node().ID(),
			now.Sub(before))
		j.past[l] = now
	}
}

// Whatever ends a leadership, its deadline never becomes later once its context has
// ended, and no work of another node begins before it.
func TestDeadlinesNeverMoveOnAndNeverOverlap(t *testing.T) {
	playSeeds(t, 6, func(c *seededCluster) { playDeadlines(c, 60) })
}

func playDeadlines(c *seededCluster, steps int) {
	t := c.t
	c.record()
	j := &judge{t: t, past: map[*cluster.Leadership]time.Time{}}
	o := c.campaign("a", "b", "c")
	for range steps {
		l := o.next()
		j.begins(l)
		time.Sleep(c.dice.UpTo(2 * time.Second))
		ctx, cancel := context.WithTimeout(t.Context(), c.dice.UpTo(time.Second))
		id := l.Node().ID()
		switch c.dice.Below(5) {
		case 0:
			c.clocks[id].ahead.Add(int64(c.dice.UpTo(5 * time.Second)))
		case 1:
			l.Election().Transfer(ctx, "")
		case 2:
			l.Election().Resign(ctx)
		case 3:
			heard := elector.Message{Kind: elector.LeaderHeartbeat, Term: l.Term() + 1, SentAt: 1}
			l.Election().Hear(o.others(l.Node())[0], heard, nil)
		}
		cancel()
		for range 100 {
			j.look()
			time.Sleep(10 * time.Millisecond)
		}
		l.Release()
		o.join(l.Node())
	}
	c.endRecord()
	for _, n := range c.nodes() {
		n.Default().Resign(cluster.Canceled)
	}
	c.stopAll()
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
	var log lockedBuffer
	logged := clustertest.Configure(func(cfg *cluster.Config) {
		cfg.Logger = hclog.New(&hclog.LoggerOptions{Output: &log})
	})
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		time.Sleep(election)
		leader := c.leader()
		l, err := leader.Default().Campaign(t.Context())
		require.NoError(t, err)
		time.Sleep(time.Second)
		require.NoError(t, leader.Transfer(t.Context(), "")) // the work never stops
		<-l.Done()
		time.Sleep(time.Second)
		require.Equal(t, 1, log.count("guarded work has not stopped in time"))
		l.Release()
	}, logged)
}
