package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/clustertest"
	"github.com/bmqelect/bmqelect/elector"
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

// run lets every node of a world run callbacks of its own; the results come by
// the channels when ctx has ended.
func (c *testCluster) run(ctx context.Context,
	callbacks func(cluster.NodeID) cluster.Callbacks) map[cluster.NodeID]<-chan error {
	results := map[cluster.NodeID]<-chan error{}
	for id, n := range c.nodes() {
		result := make(chan error, 1)
		go func() { result <- n.Default().Run(ctx, callbacks(id)) }()
		results[id] = result
	}
	return results
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
		results := c.run(t.Context(),
			func(cluster.NodeID) cluster.Callbacks { return d.callbacks(untilToldToStop) })
		time.Sleep(time.Second)
		c.Stop("a")
		require.ErrorIs(t, <-results["a"], cluster.ErrClosed)
		require.Equal(t, []string{"started", "returned", "stopped STOPPED"}, d.read())
	})
}

// A leader without work is of no use: each node whose work ends by itself gives leadership
// up, so that the others have their turn, and rests ever longer.
func TestWorkThatEndsByItselfGivesLeadershipUp(t *testing.T) {
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		ctx, cancel := context.WithCancel(t.Context())
		began := map[cluster.NodeID][]time.Time{}
		var mu sync.Mutex
		results := c.run(ctx, func(id cluster.NodeID) cluster.Callbacks {
			return cluster.Callbacks{OnStartedLeading: func(context.Context, *cluster.Leadership) error {
				mu.Lock()
				defer mu.Unlock()
				began[id] = append(began[id], time.Now())
				return errors.New("the token is old")
			}}
		})
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
		cancel()
		for _, result := range results {
			require.NoError(t, <-result)
		}
	})
}

// Work whose write outlasted the lease has not failed: it was told to stop.
func TestWorkThatLostItsLeaseHasNotEndedByItself(t *testing.T) {
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		ctx, cancel := context.WithCancel(t.Context())
		results := c.run(ctx, func(cluster.NodeID) cluster.Callbacks {
			work := func(ctx context.Context, l *cluster.Leadership) error {
				<-ctx.Done()
				time.Sleep(3 * time.Second)
				_, err := l.NextLSN()
				return fmt.Errorf("write: %w", err)
			}
			return cluster.Callbacks{OnStartedLeading: work}
		})
		time.Sleep(election)
		old := c.leader()
		c.Isolate(old.ID())
		time.Sleep(election)
		require.Zero(t, old.Default().Status().WorkEnds)
		require.Empty(t, old.Default().Status().WorkError)
		cancel()
		for _, result := range results {
			require.NoError(t, <-result)
		}
	})
}

// Work that fails because it was canceled leaves no rest: nobody campaigns, and whoever does
// next is not told of one.
func TestWorkThatFailsWhileItIsCanceledLeavesNoRest(t *testing.T) {
	withCluster(t, one, func(t *testing.T, c *testCluster) {
		ctx, cancel := context.WithCancel(t.Context())
		results := c.run(ctx, func(cluster.NodeID) cluster.Callbacks {
			return cluster.Callbacks{OnStartedLeading: func(context.Context, *cluster.Leadership) error {
				cancel()
				return errors.New("the disk is full")
			}}
		})
		require.NoError(t, <-results["a"])
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
		ctx, cancel := context.WithCancel(t.Context())
		var rests []time.Duration
		var stopped time.Time
		results := c.run(ctx, func(cluster.NodeID) cluster.Callbacks {
			return cluster.Callbacks{
				OnStartedLeading: func(context.Context, *cluster.Leadership) error {
					if !stopped.IsZero() {
						rests = append(rests, time.Since(stopped).Truncate(time.Second))
					}
					if len(rests) == 8 {
						time.Sleep(time.Minute)
					}
					stopped = time.Now()
					return nil
				},
			}
		})
		time.Sleep(10 * time.Minute)
		cancel()
		require.NoError(t, <-results["a"])
		for i, want := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60, 1, 2} {
			require.InDelta(t, want*time.Second, rests[i], float64(3*time.Second), "%d: %v", i, rests)
		}
	})
}

// Work may run elsewhere: then the node leads on when the callback has returned.
func TestWorkElsewhereKeepsLeadership(t *testing.T) {
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		var d diary
		ctx, cancel := context.WithCancel(t.Context())
		results := c.run(ctx, func(cluster.NodeID) cluster.Callbacks {
			cb := d.callbacks(func(context.Context, *cluster.Leadership) error { return nil })
			cb.WorkElsewhere = true
			return cb
		})
		time.Sleep(time.Minute)
		require.Equal(t, []string{"started", "returned"}, d.read())
		c.leader()
		cancel()
		for _, result := range results {
			require.NoError(t, <-result)
		}
		require.Equal(t, "stopped RESIGNED", d.read()[2])
	})
}

// One more replica of the same program works where nobody is to lead.
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

// A callback that blocks for ever keeps its own Run, and nobody else: another node
// leads when the lease has ended.
func TestACallbackThatBlocksForEver(t *testing.T) {
	for name, blocks := range map[string]func(cb *cluster.Callbacks, forever <-chan struct{}){
		"OnStartedLeading": func(cb *cluster.Callbacks, forever <-chan struct{}) {
			cb.OnStartedLeading = func(context.Context, *cluster.Leadership) error {
				<-forever
				return nil
			}
		},
		"OnStoppedLeading": func(cb *cluster.Callbacks, forever <-chan struct{}) {
			cb.OnStoppedLeading = func(*cluster.Leadership) { <-forever }
		},
		"OnNewLeader": func(cb *cluster.Callbacks, forever <-chan struct{}) {
			cb.OnNewLeader = func(cluster.Leader) { <-forever }
		},
	} {
		t.Run(name, func(t *testing.T) {
			withCluster(t, three, func(t *testing.T, c *testCluster) {
				forever := make(chan struct{})
				var d diary
				ctx, cancel := context.WithCancel(t.Context())
				results := c.run(ctx, func(cluster.NodeID) cluster.Callbacks {
					cb := d.callbacks(untilToldToStop)
					blocks(&cb, forever)
					return cb
				})
				time.Sleep(election)
				old := c.leader()
				require.NoError(t, old.Transfer(t.Context(), ""))
				require.False(t, old.IsLeader())
				time.Sleep(time.Minute)
				require.NotEqual(t, old, c.leader())
				close(forever)
				cancel()
				for _, result := range results {
					require.NoError(t, <-result)
				}
			})
		})
	}
}

// A callback that panics ends its own Run, which returns the panic after handing
// over; OnStoppedLeading is still called.
func TestACallbackThatPanics(t *testing.T) {
	for name, panics := range map[string]func(cb *cluster.Callbacks){
		"OnStartedLeading": func(cb *cluster.Callbacks) {
			cb.OnStartedLeading = func(context.Context, *cluster.Leadership) error { panic("oops") }
		},
		"OnStoppedLeading": func(cb *cluster.Callbacks) {
			cb.OnStoppedLeading = func(
				*cluster.Leadership) {
				panic("oops")
			}
		},
		"OnNewLeader": func(cb *cluster.Callbacks) {
			cb.OnNewLeader = func(
				cluster.Leader) {
				panic("oops")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			withCluster(t, three, func(t *testing.T, c *testCluster) {
				n := c.Node("a").Default()
				var d diary
				cb := d.callbacks(untilToldToStop)
				panics(&cb)
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

// A follower that loses sight of a leader and finds it again in the same term has
// no new leader.
func TestALeaderFoundAgainIsNotNew(t *testing.T) {
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		time.Sleep(election)
		leader := c.leader()
		id := c.others(leader)[0]
		var d diary
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- c.Node(id).Default().Run(ctx, d.callbacks(untilToldToStop)) }()
		c.Isolate(id)
		time.Sleep(election)
		require.Empty(t, c.Node(id).Status().Groups[0].Leader)
		c.Heal()
		time.Sleep(election)
		require.Equal(t, leader, c.leader())
		cancel()
		<-ended
		term := leader.Status().Groups[0].Term
		require.Equal(t, []cluster.Leader{{Node: leader.ID(), Term: term}}, d.leaders)
	})
}

// Leadership that was lost and won back between two looks shows by its term, and the
// old one stays ended.
func TestLeadershipLostAndRegainedBetweenTwoLooks(t *testing.T) {
	withContest(t, func(t *testing.T, o *contest, l *cluster.Leadership) {
		e := l.Election()
		before, err := e.Leader(t.Context())
		require.NoError(t, err)
		l.Release()
		next := o.next()
		o.join(l.Node())
		next.Release()
		for again := o.next(); again.Node() != l.Node(); again = o.next() {
			o.join(next.Node())
			again.Release()
		}
		after, err := e.Leader(t.Context())
		require.NoError(t, err)
		require.Equal(t, before.Node, after.Node)
		require.Less(t, before.Term, after.Term)
		require.True(t, e.IsLeader())
		require.False(t, l.Valid())
		_, err = l.NextLSN()
		require.ErrorIs(t, err, cluster.ErrNotLeader)
		require.Equal(t, elector.Resigned, l.Reason())
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
