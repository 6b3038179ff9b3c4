package cluster_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/clustertest"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/memnet"
)

// warmUp is how long the application of these tests needs before it can work.
const warmUp = 10 * time.Second

// slowApp is an application on all nodes that needs long to warm up.
type slowApp struct {
	mu      sync.Mutex
	warm    map[cluster.NodeID]bool
	works   cluster.NodeID // "" for nobody
	since   time.Time      // that it works, or that nobody does
	led     time.Time      // when the newest leader was seen
	overlap bool           // OnPrepare and OnStartedLeading of a node ran at once
	busy    map[cluster.NodeID]bool
}

// begin notes that a callback of a node runs; the result ends that.
func (a *slowApp) begin(id cluster.NodeID) func() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.overlap = a.overlap || a.busy[id]
	a.busy[id] = true
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.busy[id] = false
	}
}

// prepare warms up, unless it is told to stop.
func (a *slowApp) prepare(ctx context.Context, id cluster.NodeID) error {
	a.mu.Lock()
	warm := a.warm[id]
	a.mu.Unlock()
	if !warm {
		select {
		case <-time.After(warmUp):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.warm[id] = true
	return nil
}

func (a *slowApp) set(id cluster.NodeID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.works, a.since = id, time.Now()
}

func (a *slowApp) working() (cluster.NodeID, time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.works, a.since
}

func (a *slowApp) callbacks(id cluster.NodeID) cluster.Callbacks {
	return cluster.Callbacks{
		OnPrepare: func(ctx context.Context) error {
			defer a.begin(id)()
			return a.prepare(ctx, id)
		},
		OnStartedLeading: func(ctx context.Context, _ *cluster.Leadership) error {
			defer a.begin(id)()
			if err := a.prepare(ctx, id); err != nil {
				return err
			}
			a.set(id)
			<-ctx.Done()
			a.set("")
			a.mu.Lock()
			defer a.mu.Unlock()
			a.warm[id] = false
			return ctx.Err()
		},
		OnNewLeader: func(l cluster.Leader) {
			a.mu.Lock()
			defer a.mu.Unlock()
			if l.Node == id {
				a.led = time.Now()
			}
		},
	}
}

// TestASuccessorIsPreparedAheadOfTime: an application that needs 10 s to warm up has no gap. A
// planned handover waits for a successor that is not prepared; after a crash the prepared one
// leads.
func TestASuccessorIsPreparedAheadOfTime(t *testing.T) {
	profiles := map[string]elector.Timing{"article": elector.Article(), "lan": elector.LAN()}
	for name, timing := range profiles {
		t.Run(name, func(t *testing.T) {
			withCluster(t, []cluster.NodeID{"a", "b", "c", "d", "e"}, func(t *testing.T, c *testCluster) {
				a := &slowApp{warm: map[cluster.NodeID]bool{}, busy: map[cluster.NodeID]bool{}}
				gap := 5 * time.Millisecond
				if timing.MinRandomWait == 0 {
					gap += timing.MaxRandomWait / 100 // that the successor of a cession waits at most
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				for id, n := range c.nodes() {
					go func() {
						err := n.Default().Run(ctx, a.callbacks(id))
						require.True(t, err == nil || errors.Is(err, cluster.ErrClosed), err)
					}()
				}
				next := func(not cluster.NodeID) (id cluster.NodeID, since time.Time) {
					c.Await("another node works", func() bool {
						id, since = a.working()
						return id != "" && id != not
					})
					return id, since
				}
				first, _ := next("")
				time.Sleep(warmUp + time.Second) // the successor warms up
				heir := c.Node(first).Status().Groups[0].Successor
				require.NotEmpty(t, heir)
				require.Equal(t, heir, c.Node(heir).Status().Groups[0].Successor)

				other := slices.DeleteFunc(c.Running(), func(id cluster.NodeID) bool {
					return id == first || id == heir
				})[0]
				began := time.Now()
				stopped := a.stops(first)
				require.NoError(t, c.Node(first).Transfer(t.Context(), other))
				require.GreaterOrEqual(t, time.Since(began), warmUp, "the target was cold")
				second, since := next(first)
				require.Equal(t, other, second)
				require.Less(t, since.Sub(<-stopped), gap)

				time.Sleep(warmUp + time.Second)
				heir = c.Node(second).Status().Groups[0].Successor
				stopped = a.stops(second)
				c.Stop(second)
				third, since := next(second)
				require.Equal(t, heir, third, "the prepared one")
				require.Less(t, since.Sub(<-stopped), gap)

				time.Sleep(warmUp + time.Second)
				heir = c.Node(third).Status().Groups[0].Successor
				c.Crash(third)
				fourth, since := next(third)
				if timing.MinRandomWait == 0 && fourth != heir {
					return // in the article's profile another may wait even less, by chance
				}
				require.Equal(t, heir, fourth)
				require.Less(t, since.Sub(a.led), 5*time.Millisecond, "as soon as it leads")
				require.False(t, a.overlap)
			}, clustertest.Configure(func(c *cluster.Config) { c.Election.Timing = timing }),
				clustertest.Network(func(n *memnet.Network) { // turns need a round trip
					n.Delay(func(string, string) time.Duration { return 100 * time.Microsecond },
						func() time.Duration { return 0 })
				}))
		})
	}
}

// stops tells when a node's work has stopped.
func (a *slowApp) stops(id cluster.NodeID) <-chan time.Time {
	at := make(chan time.Time, 1)
	go func() {
		for {
			if now, since := a.working(); now != id {
				at <- since
				return
			}
			time.Sleep(100 * time.Microsecond)
		}
	}()
	return at
}

// TestAPreparationThatFailsIsTriedAgain: handovers do not wait for ever.
func TestAPreparationThatFailsIsTriedAgain(t *testing.T) {
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		var mu sync.Mutex
		calls := map[cluster.NodeID][]time.Time{}
		end := c.run(func(id cluster.NodeID) cluster.Callbacks {
			return cluster.Callbacks{OnPrepare: func(context.Context) error {
				mu.Lock()
				defer mu.Unlock()
				calls[id] = append(calls[id], time.Now())
				return errors.New("no memory")
			}, OnStartedLeading: untilToldToStop}
		})
		leader := c.AwaitLeader()
		time.Sleep(time.Minute)
		heir := c.Node(leader).Status().Groups[0].Successor
		require.True(t, c.Node(heir).Status().Groups[0].Unprepared)
		mu.Lock()
		require.Len(t, calls, 1, "only the successor is told")
		require.InDelta(t, 5, len(calls[heir]), 2, "after 2, 4, 8, 16, 32 seconds: %v", calls[heir])
		mu.Unlock()
		began := time.Now()
		require.NoError(t, c.Node(leader).Transfer(t.Context(), ""))
		require.InDelta(t, 15, time.Since(began).Seconds(), 1, "it waits no longer")
		end()
	})
}

// TestAPreparationThatPanicsEndsRun does so on the node that is named.
func TestAPreparationThatPanicsEndsRun(t *testing.T) {
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, len(three))
		for _, n := range c.nodes() {
			go func() {
				ended <- n.Default().Run(ctx, cluster.Callbacks{
					OnPrepare:        func(context.Context) error { panic("oh") },
					OnStartedLeading: untilToldToStop,
				})
			}()
		}
		require.ErrorContains(t, <-ended, "OnPrepare panicked: oh")
		cancel()
		for range len(three) - 1 {
			<-ended
		}
	})
}
