package cluster

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
)

// diary notes which callbacks were called, in order.
type diary struct {
	mu      sync.Mutex
	entries []string
	leaders []Leader
}

func (d *diary) add(entry string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.entries = append(d.entries, entry)
}

func (d *diary) read() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]string(nil), d.entries...)
}

// callbacks write a diary; work runs within OnStartedLeading.
func (d *diary) callbacks(work func(context.Context, *Leadership)) Callbacks {
	return Callbacks{
		OnStartedLeading: func(ctx context.Context, l *Leadership) {
			d.add("started")
			defer d.add("returned")
			work(ctx, l)
		},
		OnStoppedLeading: func(l *Leadership) { d.add("stopped " + l.Reason().String()) },
		OnNewLeader: func(l Leader) {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.leaders = append(d.leaders, l)
		},
	}
}

func untilToldToStop(ctx context.Context, _ *Leadership) { <-ctx.Done() }

// run lets every node of a world run callbacks of its own; the results come by
// the channels when ctx has ended.
func (w *world) run(ctx context.Context, callbacks func(NodeID) Callbacks) map[NodeID]<-chan error {
	results := map[NodeID]<-chan error{}
	for id, n := range w.nodes {
		result := make(chan error, 1)
		go func() { result <- n.Default().Run(ctx, callbacks(id)) }()
		results[id] = result
	}
	return results
}

func TestRunCampaignsAgainAfterALoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		w.edit = func(c *Config) { c.Election.NotCandidate = c.Node != "a" }
		w.start("a", "b", "c")
		var d diary
		ctx, cancel := context.WithCancelCause(t.Context())
		result := make(chan error, 1)
		go func() { result <- w.nodes["a"].Default().Run(ctx, d.callbacks(untilToldToStop)) }()
		time.Sleep(election)
		require.Equal(t, []string{"started"}, d.read())
		w.isolate("a")
		time.Sleep(election)
		w.faults["a"].HealAll()
		time.Sleep(election)
		require.Equal(t, []string{"started", "returned", "stopped LEASE_EXPIRED", "started"}, d.read())
		cancel(errors.New("deploy"))
		require.ErrorContains(t, <-result, "deploy")
		require.Equal(t, []string{"returned", "stopped RESIGNED"}, d.read()[4:])
		require.False(t, w.nodes["a"].IsLeader(), "Run has resigned")
		require.Len(t, d.leaders, 2, "%v", d.leaders)
		require.Less(t, d.leaders[0].Term, d.leaders[1].Term)
		w.closeAll()
	})
}

func TestRunEndsWithTheNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a")
		w.start("a")
		var d diary
		results := w.run(t.Context(), func(NodeID) Callbacks { return d.callbacks(untilToldToStop) })
		time.Sleep(time.Second)
		w.close("a")
		require.ErrorIs(t, <-results["a"], ErrClosed)
		require.Equal(t, []string{"started", "returned", "stopped STOPPED"}, d.read())
	})
}

// Work may return before its leadership ends: the node leads on.
func TestWorkThatReturnsEarlyDoesNotEndTheLeadership(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		w.start("a", "b", "c")
		var d diary
		ctx, cancel := context.WithCancel(t.Context())
		results := w.run(ctx, func(NodeID) Callbacks {
			return d.callbacks(func(context.Context, *Leadership) {})
		})
		time.Sleep(time.Minute)
		require.Equal(t, []string{"started", "returned"}, d.read())
		w.leader()
		cancel()
		for _, result := range results {
			require.ErrorIs(t, <-result, context.Canceled)
		}
		w.closeAll()
	})
}

// A callback that blocks for ever keeps its own Run, and nobody else: another node
// leads when the lease has ended.
func TestACallbackThatBlocksForEver(t *testing.T) {
	for name, blocks := range map[string]func(cb *Callbacks, forever <-chan struct{}){
		"OnStartedLeading": func(cb *Callbacks, forever <-chan struct{}) {
			cb.OnStartedLeading = func(context.Context, *Leadership) { <-forever }
		},
		"OnStoppedLeading": func(cb *Callbacks, forever <-chan struct{}) {
			cb.OnStoppedLeading = func(*Leadership) { <-forever }
		},
		"OnNewLeader": func(cb *Callbacks, forever <-chan struct{}) {
			cb.OnNewLeader = func(Leader) { <-forever }
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, "a", "b", "c")
				w.start("a", "b", "c")
				forever := make(chan struct{})
				var d diary
				ctx, cancel := context.WithCancel(t.Context())
				results := w.run(ctx, func(NodeID) Callbacks {
					cb := d.callbacks(untilToldToStop)
					blocks(&cb, forever)
					return cb
				})
				time.Sleep(election)
				old := w.leader()
				require.NoError(t, old.Transfer(t.Context(), ""))
				require.False(t, old.IsLeader())
				time.Sleep(time.Minute)
				require.NotEqual(t, old, w.leader())
				close(forever)
				cancel()
				for _, result := range results {
					require.ErrorIs(t, <-result, context.Canceled)
				}
				w.closeAll()
			})
		})
	}
}

// A callback that panics ends its own Run, which returns the panic after handing
// over; OnStoppedLeading is still called.
func TestACallbackThatPanics(t *testing.T) {
	for name, panics := range map[string]func(cb *Callbacks){
		"OnStartedLeading": func(cb *Callbacks) { cb.OnStartedLeading = func(context.Context, *Leadership) { panic("oops") } },
		"OnStoppedLeading": func(cb *Callbacks) { cb.OnStoppedLeading = func(*Leadership) { panic("oops") } },
		"OnNewLeader":      func(cb *Callbacks) { cb.OnNewLeader = func(Leader) { panic("oops") } },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, "a", "b", "c")
				w.edit = func(c *Config) { c.Election.NotCandidate = c.Node == "c" }
				w.start("a", "b", "c")
				n := w.nodes["a"].Default()
				var d diary
				cb := d.callbacks(untilToldToStop)
				panics(&cb)
				result := make(chan error, 1)
				go func() { result <- n.Run(t.Context(), cb) }()
				require.NoError(t, w.nodes["b"].Default().Resign(t.Context()))
				if name == "OnStoppedLeading" {
					time.Sleep(election)
					require.NoError(t, n.StepDown(t.Context(), 0))
				}
				var p *PanicError
				require.ErrorAs(t, <-result, &p)
				require.Equal(t, name, p.Callback)
				require.Equal(t, "oops", p.Value)
				require.Contains(t, string(p.Stack), "run_test.go")
				if name == "OnStartedLeading" {
					require.Equal(t, []string{"stopped RESIGNED"}, d.read())
				}
				next, err := w.nodes["b"].Default().Campaign(t.Context())
				require.NoError(t, err, "somebody else can lead")
				next.Release()
				w.closeAll()
			})
		})
	}
}

func TestACallbackThatEndsItsGoroutineHasReturned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a")
		w.start("a")
		var d diary
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		cb := d.callbacks(func(context.Context, *Leadership) { runtime.Goexit() })
		require.ErrorIs(t, w.nodes["a"].Default().Run(ctx, cb), context.DeadlineExceeded)
		require.Equal(t, []string{"started", "returned", "stopped RESIGNED"}, d.read())
		w.closeAll()
	})
}

func TestObserversOfEveryPaceEndWithTheNewestLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		w.start("a", "b", "c")
		ctx, cancel := context.WithCancel(t.Context())
		paces := []time.Duration{0, 3 * time.Second, 2 * time.Minute}
		seen := make([][]Leader, len(paces))
		var all sync.WaitGroup
		for i, pace := range paces {
			all.Go(func() {
				for l := range w.nodes["a"].Default().Observe(ctx) {
					seen[i] = append(seen[i], l)
					time.Sleep(pace)
				}
			})
		}
		time.Sleep(election)
		for range 5 {
			require.NoError(t, w.leader().Transfer(t.Context(), ""))
			time.Sleep(time.Second)
		}
		now, err := w.nodes["a"].Default().Leader(t.Context())
		require.NoError(t, err)
		time.Sleep(3 * time.Minute)
		cancel()
		all.Wait()
		for i, leaders := range seen {
			require.Equal(t, now, leaders[len(leaders)-1], "pace %s", paces[i])
			for j := range leaders[1:] {
				require.NotEqual(t, leaders[j], leaders[j+1])
			}
		}
		require.Len(t, seen[2], 2, "the slow one saw the first and the last word: %v", seen[2])
		w.closeAll()
	})
}

// A follower that loses sight of a leader and finds it again in the same term has
// no new leader.
func TestALeaderFoundAgainIsNotNew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		w.start("a", "b", "c")
		time.Sleep(election)
		leader := w.leader()
		id := w.others(leader)[0]
		var d diary
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.nodes[id].Default().Run(ctx, d.callbacks(untilToldToStop)) }()
		w.isolate(id)
		time.Sleep(election)
		require.Empty(t, w.nodes[id].Status().Groups[0].Leader)
		w.faults[id].HealAll()
		time.Sleep(election)
		require.Equal(t, leader, w.leader())
		cancel()
		<-ended
		require.Equal(t, []Leader{{leader.cfg.Node, leader.Status().Groups[0].Term}}, d.leaders)
		w.closeAll()
	})
}

// Leadership that was lost and won back between two looks shows by its term, and the
// old one stays ended.
func TestLeadershipLostAndRegainedBetweenTwoLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, l := startedContest(t)
		e := l.e
		before, err := e.Leader(t.Context())
		require.NoError(t, err)
		l.Release()
		next := o.next()
		o.join(l.node())
		next.Release()
		for again := o.next(); again.node() != l.node(); again = o.next() {
			o.join(next.node())
			again.Release()
		}
		after, err := e.Leader(t.Context())
		require.NoError(t, err)
		require.Equal(t, before.Node, after.Node)
		require.Less(t, before.Term, after.Term)
		require.True(t, e.IsLeader())
		require.False(t, l.Valid())
		_, err = l.NextLSN()
		require.ErrorIs(t, err, ErrNotLeader)
		require.Equal(t, elector.Resigned, l.Reason())
		o.closeAll()
	})
}

func TestLeaderWaitsForOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		w.start("a")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := w.nodes["a"].Default().Leader(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		w.start("b", "c")
		l, err := w.nodes["a"].Default().Leader(t.Context())
		require.NoError(t, err)
		time.Sleep(time.Second) // the others hear of it
		require.Equal(t, w.leader().cfg.Node, l.Node)
		n := w.nodes["a"]
		w.close("a")
		_, err = n.Default().Leader(t.Context())
		require.ErrorIs(t, err, ErrClosed)
		w.closeAll()
	})
}
