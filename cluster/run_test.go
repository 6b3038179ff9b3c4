package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/clustertest"
	"github.com/bmqelect/bmqelect/cluster/internal/testhook"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/base/clock"
	"github.com/stretchr/testify/require"
)

// diary notes which callbacks were called, in order.
type diary struct {
	mu      sync.Mutex
	entries []string
	leaders []cluster.Leader
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
func (d *diary) callbacks(
	work func(context.Context, *cluster.Leadership) error,
) cluster.Callbacks {
	return cluster.Callbacks{
		OnStartedLeading: func(ctx context.Context, l *cluster.Leadership) error {
			d.add("started")
			defer d.add("returned")
			return work(ctx, l)
		},
		OnStoppedLeading: func(l *cluster.Leadership) { d.add("stopped " + l.Reason().String()) },
		OnNewLeader: func(l cluster.Leader) {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.leaders = append(d.leaders, l)
		},
	}
}

func untilToldToStop(ctx context.Context, _ *cluster.Leadership) error {
	<-ctx.Done()
	return ctx.Err()
}

// run lets every node run callbacks of its own. end ends their context; each Run must then return
// without an error.
func (c *testCluster) run(callbacks func(cluster.NodeID) cluster.Callbacks) (end func()) {
	ctx, cancel := context.WithCancel(c.t.Context())
	results := make(chan error, len(c.ids))
	for id, n := range c.nodes() {
		go func() { results <- n.Default().Run(ctx, callbacks(id)) }()
	}
	return func() {
		cancel()
		for range c.nodes() {
			require.NoError(c.t, <-results)
		}
	}
}

// working are callbacks with this work on every node.
func working(work func(context.Context, *cluster.Leadership) error) func(
	cluster.NodeID) cluster.Callbacks {
	return func(cluster.NodeID) cluster.Callbacks {
		return cluster.Callbacks{OnStartedLeading: work}
	}
}

// A node that got no core for a while finds its lease at an end, and then that heartbeats were
// acknowledged in time: work that has returned meanwhile is called again.
func TestWorkThatMisjudgesItsLeaseIsCalledAgain(t *testing.T) {
	clocks, useClocks := leapingClocks(three)
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		var first atomic.Pointer[cluster.Leadership]
		again := make(chan struct{}, 1)
		end := c.run(working(func(ctx context.Context, l *cluster.Leadership) error {
			if first.CompareAndSwap(nil, l) {
				time.Sleep(1234567 * time.Microsecond) // nobody else looks at a clock then
				ahead := &clocks[l.Node().ID()].ahead
				ahead.Store(int64(time.Minute))
				go func() { synctest.Wait(); ahead.Store(0) }()
				return cluster.ErrNotLeader
			}
			again <- struct{}{}
			<-ctx.Done()
			return ctx.Err()
		}))
		time.Sleep(2 * time.Minute) // the time of the machines goes on when the clock has come that far
		require.Len(t, again, 1)
		var ended *cluster.EndedError
		require.ErrorAs(t, context.Cause(first.Load().Context()), &ended)
		require.Equal(t, elector.LeaseExpired, ended.Reason)
		end()
	}, useClocks)
}

func TestRunCampaignsAgainAfterALoss(t *testing.T) {
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		var d diary
		ctx, cancel := context.WithCancelCause(t.Context())
		result := make(chan error, 1)
		go func() { result <- c.Node("a").Default().Run(ctx, d.callbacks(untilToldToStop)) }()
		time.Sleep(election)
		require.Equal(t, []string{"started"}, d.read())
		c.Isolate("a")
		time.Sleep(election)
		c.Heal()
		time.Sleep(election)
		require.Equal(t, []string{"started", "returned", "stopped LEASE_EXPIRED", "started"}, d.read())
		cancel(errors.New("deploy"))
		require.NoError(t, <-result, "its own context has ended")
		require.Equal(t, []string{"returned", "stopped RESIGNED"}, d.read()[4:])
		require.False(t, c.Node("a").IsLeader(), "Run has resigned")
		require.Len(t, d.leaders, 2, "%v", d.leaders)
		require.Less(t, d.leaders[0].Term, d.leaders[1].Term)
	}, clustertest.Configure(
		func(cfg *cluster.Config) { cfg.Election.NotCandidate = cfg.Node != "a" }))
}

func TestRunEndsWithTheNode(t *testing.T) {
	withCluster(t, one, func(t *testing.T, c *testCluster) {
		var d diary
		ended := make(chan error, 1)
		go func() { ended <- c.Node("a").Default().Run(t.Context(), d.callbacks(untilToldToStop)) }()
		time.Sleep(time.Second)
		c.Stop("a")
		require.ErrorIs(t, <-ended, cluster.ErrClosed)
		require.Equal(t, []string{"started", "returned", "stopped STOPPED"}, d.read())
	})
}

// A leader without work is of no use: a node whose work ends by itself gives leadership up, so that
// the others get their turn, and rests longer each time.
func TestWorkThatEndsByItselfGivesLeadershipUp(t *testing.T) {
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		began := map[cluster.NodeID][]time.Time{}
		var mu sync.Mutex
		end := c.run(working(func(_ context.Context, l *cluster.Leadership) error {
			mu.Lock()
			defer mu.Unlock()
			id := l.Node().ID()
			began[id] = append(began[id], time.Now())
			return errors.New("the token is old")
		}))
		time.Sleep(10 * time.Minute)
		mu.Lock()
		defer mu.Unlock()
		for id, at := range began {
			require.LessOrEqual(t, len(at), 6+10, "%s: rests of 1 to 32 s, then of a minute", id)
			require.Greater(t, at[3].Sub(at[2]), 4*time.Second)
			st := c.Node(id).Default().Status()
			require.False(t, st.Leading)
			require.EqualValues(t, len(at), st.WorkEnds)
			require.Equal(t, "the token is old", st.WorkError)
			require.Equal(t, st.WorkEnds, c.Node(id).Stats().Elections[0].WorkEnds)
			if st.RestLeft > 0 {
				require.Equal(t, "ended", st.Work)
				require.Contains(t, st.Explanation, "its work ended by itself (the token is old)")
			} else {
				require.Empty(t, st.Work)
			}
		}
		require.Len(t, began, 3, "each had its turn")
		end()
	})
}

// Work has not failed if its write took longer than the lease: it was told to stop.
func TestWorkThatLostItsLeaseHasNotEndedByItself(t *testing.T) {
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		end := c.run(working(func(ctx context.Context, l *cluster.Leadership) error {
			<-ctx.Done()
			time.Sleep(3 * time.Second)
			_, err := l.NextLSN()
			return fmt.Errorf("write: %w", err)
		}))
		old := c.elect()
		c.Isolate(old.ID())
		time.Sleep(election)
		require.Zero(t, old.Default().Status().WorkEnds)
		require.Empty(t, old.Default().Status().WorkError)
		end()
	})
}

// Work that fails because it was canceled causes no rest: nobody campaigns then, and the next
// campaign must not wait.
func TestWorkThatFailsWhileItIsCanceledLeavesNoRest(t *testing.T) {
	withCluster(t, one, func(t *testing.T, c *testCluster) {
		ctx, cancel := context.WithCancel(t.Context())
		require.NoError(t, c.Node("a").Default().Run(ctx, cluster.Callbacks{
			OnStartedLeading: func(context.Context, *cluster.Leadership) error {
				cancel()
				return errors.New("the disk is full")
			},
		}))
		st := c.Node("a").Default().Status()
		require.EqualValues(t, 1, st.WorkEnds)
		require.Equal(t, "the disk is full", st.WorkError)
		require.Empty(t, st.Work)
		require.NotContains(t, st.Explanation, "rests")
	})
}

// The rest doubles up to a minute, and begins anew after work that went on for a minute.
func TestRestsAfterWorkThatEnds(t *testing.T) {
	withCluster(t, one, func(t *testing.T, c *testCluster) {
		var rests []time.Duration
		var stopped time.Time
		end := c.run(working(func(context.Context, *cluster.Leadership) error {
			if !stopped.IsZero() {
				rests = append(rests, time.Since(stopped).Truncate(time.Second))
			}
			if len(rests) == 8 {
				time.Sleep(time.Minute)
			}
			stopped = time.Now()
			return nil
		}))
		time.Sleep(10 * time.Minute)
		end()
		for i, want := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60, 1, 2} {
			require.InDelta(t, want*time.Second, rests[i], float64(3*time.Second), "%d: %v", i, rests)
		}
	})
}

// Work may run elsewhere: then the node leads on when the callback has returned.
func TestWorkElsewhereKeepsLeadership(t *testing.T) {
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		var d diary
		end := c.run(func(cluster.NodeID) cluster.Callbacks {
			cb := d.callbacks(func(context.Context, *cluster.Leadership) error { return nil })
			cb.WorkElsewhere = true
			return cb
		})
		time.Sleep(time.Minute)
		require.Equal(t, []string{"started", "returned"}, d.read())
		c.leader()
		end()
		require.Equal(t, "stopped RESIGNED", d.read()[2])
	})
}

// The same program can run on a node that is not a candidate.
func TestRunWhereTheNodeNeverStands(t *testing.T) {
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		var d diary
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ended := make(chan error, 2)
		for range 2 {
			go func() { ended <- c.Node("a").Default().Run(ctx, d.callbacks(untilToldToStop)) }()
		}
		time.Sleep(election)
		require.Empty(t, d.read())
		require.NotEmpty(t, d.leaders)
		cancel()
		require.NoError(t, <-ended)
		require.NoError(t, <-ended)
		go func() { ended <- c.Node("a").Default().Run(t.Context(), cluster.Callbacks{}) }()
		time.Sleep(time.Second)
		c.Stop("a")
		require.ErrorIs(t, <-ended, cluster.ErrClosed)
	}, clustertest.Configure(
		func(cfg *cluster.Config) { cfg.Election.NotCandidate = cfg.Node == "a" }))
}

// replacements of a callback, by its name, with one that first does something.
var replacements = map[string]func(cb *cluster.Callbacks, do func()){
	"OnStartedLeading": func(cb *cluster.Callbacks, do func()) {
		cb.OnStartedLeading = func(context.Context, *cluster.Leadership) error { do(); return nil }
	},
	"OnStoppedLeading": func(cb *cluster.Callbacks, do func()) {
		cb.OnStoppedLeading = func(*cluster.Leadership) { do() }
	},
	"OnNewLeader": func(cb *cluster.Callbacks, do func()) {
		cb.OnNewLeader = func(cluster.Leader) { do() }
	},
}

// A callback that blocks for ever keeps its own Run, and nobody else: another node
// leads when the lease has ended.
func TestACallbackThatBlocksForEver(t *testing.T) {
	for name, replace := range replacements {
		t.Run(name, func(t *testing.T) {
			withCluster(t, three, func(t *testing.T, c *testCluster) {
				forever := make(chan struct{})
				var d diary
				end := c.run(func(cluster.NodeID) cluster.Callbacks {
					cb := d.callbacks(untilToldToStop)
					replace(&cb, func() { <-forever })
					return cb
				})
				old := c.elect()
				require.NoError(t, old.Transfer(t.Context(), ""))
				require.False(t, old.IsLeader())
				time.Sleep(time.Minute)
				require.NotEqual(t, old, c.leader())
				close(forever)
				end()
			})
		})
	}
}

// A callback that panics ends its own Run, which returns the panic after handing
// over; OnStoppedLeading is still called.
func TestACallbackThatPanics(t *testing.T) {
	for name, replace := range replacements {
		t.Run(name, func(t *testing.T) {
			withCluster(t, three, func(t *testing.T, c *testCluster) {
				n := c.Node("a").Default()
				var d diary
				cb := d.callbacks(untilToldToStop)
				replace(&cb, func() { panic("oops") })
				result := make(chan error, 1)
				go func() { result <- n.Run(t.Context(), cb) }()
				require.NoError(t, c.Node("b").Default().Resign(t.Context()))
				if name == "OnStoppedLeading" {
					time.Sleep(election)
					require.NoError(t, n.StepDown(t.Context(), 0))
				}
				var p *cluster.PanicError
				require.ErrorAs(t, <-result, &p)
				require.Equal(t, name, p.Callback)
				require.Equal(t, "oops", p.Value)
				require.Contains(t, string(p.Stack), "run_test.go")
				if name == "OnStartedLeading" {
					require.Equal(t, []string{"stopped RESIGNED"}, d.read())
				}
				next, err := c.Node("b").Default().Campaign(t.Context())
				require.NoError(t, err, "somebody else can lead")
				next.Release()
			}, clustertest.Configure(
				func(cfg *cluster.Config) { cfg.Election.NotCandidate = cfg.Node == "c" }))
		})
	}
}

func TestACallbackThatEndsItsGoroutineHasReturned(t *testing.T) {
	withCluster(t, one, func(t *testing.T, c *testCluster) {
		var d diary
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		cb := d.callbacks(func(context.Context, *cluster.Leadership) error {
			runtime.Goexit()
			return nil
		})
		require.NoError(t, c.Node("a").Default().Run(ctx, cb))
		require.Equal(t, []string{"started", "returned", "stopped RESIGNED"}, d.read()[:3])
	})
}

func TestObserversOfEveryPaceEndWithTheNewestLeader(t *testing.T) {
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		ctx, cancel := context.WithCancel(t.Context())
		paces := []time.Duration{0, 3 * time.Second, 2 * time.Minute}
		seen := make([][]cluster.Leader, len(paces))
		var all sync.WaitGroup
		for i, pace := range paces {
			all.Go(func() {
				for l := range c.nodes()["a"].Default().Observe(ctx) {
					seen[i] = append(seen[i], l)
					time.Sleep(pace)
				}
			})
		}
		time.Sleep(election)
		for range 5 {
			require.NoError(t, c.leader().Transfer(t.Context(), ""))
			time.Sleep(time.Second)
		}
		now, err := c.Node("a").Default().Leader(t.Context())
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
	})
}

func TestLeaderWaitsForOne(t *testing.T) {
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := c.Node("a").Default().Leader(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		c.Start("b")
		c.Start("c")
		l, err := c.Node("a").Default().Leader(t.Context())
		require.NoError(t, err)
		time.Sleep(time.Second) // the others hear of it
		require.Equal(t, c.leader().ID(), l.Node)
		n := c.Node("a")
		c.Stop("a")
		_, err = n.Default().Leader(t.Context())
		require.ErrorIs(t, err, cluster.ErrClosed)
	}, clustertest.Down("b", "c"))
}

// Only the holder of a leadership can say that its work has stopped. So a second Run, which a
// reload of a configuration may start, is refused until the first has returned.
func TestASecondRunWaitsForTheFirst(t *testing.T) {
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		e := c.Node("a").Default()
		ctx, cancel := context.WithCancel(t.Context())
		working, returned := make(chan struct{}), make(chan error, 1)
		go func() {
			returned <- e.Run(ctx, cluster.Callbacks{OnStartedLeading: func(ctx context.Context,
				_ *cluster.Leadership) error {
				close(working)
				<-ctx.Done()
				time.Sleep(300 * time.Millisecond)
				return nil
			}})
		}()
		<-working
		time.Sleep(time.Second)
		cancel()
		synctest.Wait() // the work is stopping
		require.ErrorIs(t, e.Run(t.Context(), cluster.Callbacks{}), cluster.ErrCampaigning)
		require.NoError(t, <-returned)
		l, err := e.Campaign(t.Context())
		require.NoError(t, err)
		l.Release()
	}, clustertest.Configure(awaitCampaign))
}

func TestAWaitingRunLearnsWhyTheNodeFailed(t *testing.T) {
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		ended := make(chan error, 1)
		go func() { ended <- c.Node("a").Default().Run(t.Context(), cluster.Callbacks{}) }()
		time.Sleep(election)
		c.Node("a").Fail(errors.New("input/output error"))
		err := <-ended
		require.ErrorContains(t, err, "input/output error")
		require.NotErrorIs(t, err, cluster.ErrClosed)
	}, clustertest.Down("b", "c"))
}

func TestResignFromOutsideWaitsForTheWorkAndEndsRun(t *testing.T) {
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		ended := map[cluster.NodeID]chan error{}
		stopped := make(chan time.Time, 3)
		for id, n := range c.nodes() {
			result := make(chan error, 1)
			ended[id] = result
			go func() {
				result <- n.Default().Run(t.Context(),
					cluster.Callbacks{OnStartedLeading: func(ctx context.Context, _ *cluster.Leadership) error {
						<-ctx.Done()
						time.Sleep(100 * time.Millisecond)
						stopped <- time.Now()
						return nil
					}})
			}()
		}
		old := c.elect()
		require.NoError(t, old.Default().Resign(t.Context()))
		require.Equal(t, <-stopped, time.Now())
		require.ErrorIs(t, <-ended[old.ID()], cluster.ErrResigned)
		next := c.elect()
		require.NotEqual(t, old, next)
		for id, n := range c.nodes() {
			if n != old {
				require.NoError(t, n.Default().Resign(t.Context()))
				require.ErrorIs(t, <-ended[id], cluster.ErrResigned)
			}
		}
	})
}

// An election that only waits, or follows, has no goroutine of RunFunc.
func TestRunFuncWaitsWithoutAGoroutine(t *testing.T) {
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		time.Sleep(time.Second) // until all links are up
		ctx, cancel := context.WithCancel(t.Context())
		ended, before := make(chan error, 300), runtime.NumGoroutine()
		for i := range 100 {
			for _, id := range three {
				e, err := c.Node(id).Election(fmt.Sprint("g", i), cluster.ElectionConfig{AwaitCampaign: true})
				require.NoError(t, err)
				e.RunFunc(ctx, untilToldToStop, func(err error) { ended <- err })
			}
		}
		synctest.Wait()
		require.LessOrEqual(t, runtime.NumGoroutine(), before+10)
		time.Sleep(3 * election)
		require.LessOrEqual(t, runtime.NumGoroutine(), before+2*100+10, "each election has one leader")
		e, err := c.Node(c.Leader("g7")).Lookup("g7")
		require.NoError(t, err)
		e.RunFunc(ctx, untilToldToStop, func(err error) { ended <- err })
		require.ErrorIs(t, <-ended, cluster.ErrCampaigning)
		cancel()
		for range 300 {
			require.NoError(t, <-ended)
		}
		require.Empty(t, c.Leader("g7"))
	}, clustertest.Configure(awaitCampaign))
}

// holding is a clock that can hold up whoever asks it next.
type holding struct {
	clock.Clock
	next atomic.Pointer[chan struct{}] // until that is closed
}

func (c *holding) Now() time.Duration {
	if until := c.next.Swap(nil); until != nil {
		<-*until
	}
	return c.Clock.Now()
}

// The end of ctx and a leadership may come at the same time. Then RunFunc has ended, once, and no
// work begins. Here whoever gives the campaign up is held up until it has been granted.
func TestRunFuncEndsOnceIfItIsGrantedAtTheEnd(t *testing.T) {
	slow := &holding{}
	clocks := clustertest.Hooks(func(id cluster.NodeID, h *testhook.Hooks) {
		if h.Clock = clock.Process(); id == "a" {
			slow.Clock = h.Clock
			h.Clock = slow
		}
	})
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		ctx, cancel := context.WithCancel(t.Context())
		var begun, ended atomic.Int64
		e := c.Node("a").Default()
		e.RunFunc(ctx, func(ctx context.Context, l *cluster.Leadership) error {
			begun.Add(1)
			return untilToldToStop(ctx, l)
		}, func(error) { ended.Add(1) })
		synctest.Wait()
		require.Zero(t, begun.Load())
		until := make(chan struct{})
		goOn := sync.OnceFunc(func() { close(until) })
		defer goOn()
		slow.next.Store(&until)
		cancel()
		synctest.Wait()
		require.Nil(t, slow.next.Load(), "somebody gives the campaign up")
		time.Sleep(election)
		require.Zero(t, begun.Load())
		require.True(t, e.IsLeader(), "it was granted meanwhile")
		goOn()
		time.Sleep(election)
		require.Zero(t, begun.Load())
		require.Equal(t, int64(1), ended.Load())
		require.False(t, e.IsLeader())
	}, clustertest.Configure(awaitCampaign), clocks)
}

func TestRunFuncTellsWhyItEnds(t *testing.T) {
	for name, c := range map[string]struct {
		id   cluster.NodeID
		work func(context.Context, *cluster.Leadership) error
		act  func(*testing.T, *testCluster)
		why  error
	}{
		"not a candidate": {"a", untilToldToStop, nil, cluster.ErrNotCandidate},
		"panic": {"b", func(context.Context, *cluster.Leadership) error {
			panic("oops")
		}, nil, nil},
		"resigned": {"b", untilToldToStop, func(t *testing.T, c *testCluster) {
			require.NoError(t, c.Node("b").Default().Resign(t.Context()))
		}, cluster.ErrResigned},
		"closed": {"b", untilToldToStop, func(_ *testing.T, c *testCluster) {
			c.Stop("b")
		}, cluster.ErrClosed},
	} {
		t.Run(name, func(t *testing.T) {
			withCluster(t, three, func(t *testing.T, w *testCluster) {
				ended := make(chan error, 1)
				w.Node(c.id).Default().RunFunc(t.Context(), c.work, func(err error) { ended <- err })
				time.Sleep(election)
				if c.act != nil {
					c.act(t, w)
				}
				err := <-ended
				if c.why != nil {
					require.ErrorIs(t, err, c.why)
					return
				}
				var panicked *cluster.PanicError
				require.ErrorAs(t, err, &panicked)
				require.Equal(t, "oops", panicked.Value)
			}, clustertest.Configure(awaitCampaign), clustertest.Configure(func(cfg *cluster.Config) {
				cfg.Election.NotCandidate = cfg.Node == "a"
			}))
		})
	}
}
