package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/internal/store"
	"github.com/stretchr/testify/require"
)

func closeAtOnce(t *testing.T, n *cluster.Node) {
	require.Error(t, n.Close(cluster.Canceled))
}

// cuts are the ways in which a node can leave while its guarded work goes on.
var cuts = map[string]func(*testing.T, *cluster.Node){
	"close without waiting": closeAtOnce,
	"close whose ctx ends": func(t *testing.T, n *cluster.Node) {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
		defer cancel()
		require.ErrorIs(t, n.Close(ctx), context.DeadlineExceeded)
	},
	"failed disk, then close": func(t *testing.T, n *cluster.Node) {
		n.Fail(errors.New("input/output error"))
		closeAtOnce(t, n)
	},
	"failed disk, then close that waits": func(t *testing.T, n *cluster.Node) {
		n.Fail(errors.New("input/output error"))
		require.NoError(t, n.Close(context.Background()))
	},
	"crossed closes": func(t *testing.T, n *cluster.Node) {
		go n.Close(context.Background())
		time.Sleep(time.Millisecond)
		closeAtOnce(t, n)
	},
}

// A node that starts again on its directory proves to the others that its old process is gone. If
// the node left without waiting, guarded work of the old process may go on until its deadline:
// nobody else may lead before.
func TestNobodyLeadsBesideTheWorkOfANodeThatLeftAndStartedAgain(t *testing.T) {
	for name, leave := range cuts {
		t.Run(name, func(t *testing.T) {
			for range 3 { // which node waits for how long is chance
				withCluster(t, three, func(t *testing.T, c *testCluster) {
					leaveAndStartAgain(t, c, leave)
				})
			}
		})
	}
}

func leaveAndStartAgain(
	t *testing.T, c *testCluster, leave func(*testing.T, *cluster.Node),
) {
	old := c.elect()
	l, err := old.Default().Campaign(t.Context())
	require.NoError(t, err)
	deadline := make(chan time.Time, 1)
	go func() {
		<-l.Context().Done()
		deadline <- l.Deadline()
	}()
	leave(t, old)
	c.Closed(old.ID())
	end := <-deadline
	started := make(chan struct{})
	go func() {
		defer close(started)
		c.Start(old.ID())
	}()
	others := c.others(old)
	for time.Now().Before(end) {
		for _, id := range others {
			n := c.Node(id)
			require.False(t, n.IsLeader(), "%s leads %s too early", n.ID(), time.Until(end))
		}
		require.True(t, l.Valid(), "the work has until its deadline")
		require.NotPanics(t, func() {
			select {
			case <-l.Done():
				require.Fail(t, "another node may lead already")
			default:
			}
		})
		time.Sleep(time.Millisecond)
	}
	<-started
	require.False(t, time.Now().Before(end), "the directory is free")
	<-l.Done()
	require.False(t, l.Valid())
	time.Sleep(election)
	c.leader()
}

func TestAStartThatMayNotWaitSaysHowLongTheDirectoryIsHeld(t *testing.T) {
	withContest(t, func(t *testing.T, o *contest, l *cluster.Leadership) {
		n := l.Node()
		err := n.Close(cluster.Canceled)
		until := l.Deadline().Format(time.StampMilli)
		require.ErrorContains(t, err,
			"stays locked until the guarded work has stopped, at the latest until "+until)
		o.Closed(n.ID())
		ctx, cancel := context.WithTimeout(o.context(n.ID()), 10*time.Millisecond)
		defer cancel()
		began := time.Now()
		_, err = cluster.Start(ctx, o.config(n.ID()))
		require.Equal(t, 10*time.Millisecond, time.Since(began))
		require.ErrorIs(t, err, store.ErrLocked)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "guarded work of node "+string(n.ID()))
		require.ErrorContains(t, err, until)
		<-l.Done()
	})
}

func TestReleasedWorkFreesTheDirectoryAtOnce(t *testing.T) {
	withContest(t, func(t *testing.T, o *contest, l *cluster.Leadership) {
		id := l.Node().ID()
		closeAtOnce(t, l.Node())
		o.Closed(id)
		require.True(t, time.Now().Before(l.Deadline()))
		l.Release()
		<-l.Done()
		began := time.Now()
		o.Start(id)
		require.Zero(t, time.Since(began))
	})
}

// The work with the latest deadline counts, over all elections, also one that was closed before the
// node.
func TestTheDirectoryIsHeldForTheWorkOfEveryElection(t *testing.T) {
	const between = 100 * time.Millisecond
	for _, c := range []struct {
		released []int
		held     time.Duration // lone voters need no lease: their work has the time of one to stop
	}{{[]int{1}, article.Lease}, {[]int{1, 2}, article.Lease - between}} {
		withCluster(t, one, func(t *testing.T, o *testCluster) {
			n := o.Node("a")
			var works []*cluster.Leadership
			for _, group := range []string{"x", "y", "z"} {
				e, err := n.Election(group, cluster.ElectionConfig{})
				require.NoError(t, err)
				l, err := e.Campaign(t.Context())
				require.NoError(t, err)
				works = append(works, l)
			}
			require.ErrorContains(t, works[0].Election().Close(cluster.Canceled),
				"guarded work had not stopped")
			time.Sleep(between)
			closeAtOnce(t, n)
			o.Closed("a")
			for _, i := range c.released {
				works[i].Release()
			}
			began := time.Now()
			o.Start("a")
			require.Equal(t, c.held, time.Since(began))
			for _, l := range works {
				<-l.Done()
				require.False(t, l.Valid())
			}
		})
	}
}

// hangWrites makes the writes of a node hang until the returned function is called.
func (c *testCluster) hangWrites(id cluster.NodeID) (goOn func()) {
	block := make(chan struct{})
	c.onWrite.Store(id, func(write func() error) error { <-block; return write() })
	goOn = sync.OnceFunc(func() { close(block) })
	c.t.Cleanup(goOn)
	return goOn
}

func TestCloseReturnsAlthoughTheDiskHangs(t *testing.T) {
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		leader := c.elect()
		hung := c.Node(c.others(leader)[0])
		goOn := c.hangWrites(hung.ID())
		c.Crash(leader.ID()) // the next election raises the term
		time.Sleep(election)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := returnsWithin(t, time.Second+2*cluster.Patience, func() error { return hung.Close(ctx) })
		require.ErrorContains(t, err, "a write to its disk has not returned")
		require.ErrorContains(t, err, c.DataDir(hung.ID()))
		require.ErrorIs(t, hung.Err(), cluster.ErrClosed)

		_, err = cluster.Start(c.context(hung.ID()), c.config(hung.ID()))
		require.ErrorIs(t, err, store.ErrLocked, "what hangs may still write")
		require.ErrorContains(t, err, "a write to its disk has not returned")
		goOn()
		require.NoError(t, hung.Close(context.Background()))
		c.Closed(hung.ID())
		c.Start(hung.ID())
	})
}

// returnsWithin runs f, which must return in time.
func returnsWithin[T any](t *testing.T, limit time.Duration, f func() T) (got T) {
	t.Helper()
	result := make(chan T, 1)
	go func() { result <- f() }()
	select {
	case got = <-result:
	case <-time.After(limit + time.Millisecond):
		require.Fail(t, fmt.Sprintf("it has not returned after %s", limit))
	}
	return got
}

// Whatever takes a ctx returns with it, also if the node hangs: with room in the driver's
// inbox and without.
func TestEveryCallReturnsWithItsContextAlthoughTheNodeHangs(t *testing.T) {
	type call struct { // on the leader, and on its part in another election
		context.Context
		l        *cluster.Leadership
		e, other *cluster.Election
	}
	for name, do := range map[string]func(call) error{
		"Campaign": func(c call) error { _, err := c.other.Campaign(c); return err },
		"Again":    func(c call) error { _, err := c.l.Again(c); return err },
		"Run": func(c call) error {
			err := c.other.Run(c, cluster.Callbacks{OnNewLeader: func(cluster.Leader) {}})
			require.NoError(t, err, "the end of its context is none")
			return c.Err()
		},
		"Resign":         func(c call) error { return c.e.Resign(c) },
		"StepDown":       func(c call) error { return c.e.StepDown(c, time.Minute) },
		"Transfer":       func(c call) error { return c.e.Transfer(c, "") },
		"Leader":         func(c call) error { _, err := c.other.Leader(c); return err },
		"Election.Close": func(c call) error { return c.other.Close(c) },
		"Node.Close":     func(c call) error { return c.l.Node().Close(c) },
		"Release": func(c call) error {
			c.l.Release()
			<-c.l.Done()
			return cluster.ErrHeldUp
		},
	} {
		for _, full := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, inbox full: %t", name, full), func(t *testing.T) {
				withContest(t, func(t *testing.T, o *contest, l *cluster.Leadership) {
					other, err := l.Node().Election("other", cluster.ElectionConfig{})
					require.NoError(t, err)
					goOn := hang(t, l.Node(), full)
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					defer cancel()
					require.Error(t, returnsWithin(t, time.Second+2*cluster.Patience,
						func() error { return do(call{ctx, l, l.Election(), other}) }))
					goOn()
					time.Sleep(election)
					l.Release()
					_ = l.Node().Close(context.Background()) // of Node.Close it has the old error
					o.Closed(l.Node().ID())
				})
			})
		}
	}
}

// hang lets a node's driver hang until the returned function is called.
func hang(t *testing.T, n *cluster.Node, full bool) (goOn func()) {
	block := make(chan struct{})
	go n.Do(func() { <-block })
	synctest.Wait()
	if full {
		n.FillInbox()
	}
	goOn = sync.OnceFunc(func() { close(block) })
	t.Cleanup(goOn)
	return goOn
}

func TestAnElectionIsNotOpenedForEverOnADiskThatHangs(t *testing.T) {
	withCluster(t, one, func(t *testing.T, c *testCluster) {
		time.Sleep(time.Second)
		n := c.Node("a")
		goOn := c.hangWrites(n.ID())
		go n.Pause(context.Background(), time.Second)
		synctest.Wait()
		e, err := n.Election("x", cluster.ElectionConfig{})
		require.NoError(t, err, "nothing of it is on the disk, or on its way")
		require.NoError(t, e.Close(t.Context()))
		err = returnsWithin(t, cluster.OpenTime, func() error {
			_, err := n.Election("x", cluster.ElectionConfig{})
			return err
		})
		require.ErrorContains(t, err, "the disk has not answered within 10s")
		_, err = n.Election("x", cluster.ElectionConfig{})
		require.ErrorIs(t, err, cluster.ErrOpen, "it is being opened still")
		goOn()
		time.Sleep(time.Second)
		_, err = n.Lookup("x")
		require.ErrorIs(t, err, cluster.ErrNotOpen, "the call had failed")
		_, err = n.Election("x", cluster.ElectionConfig{})
		require.NoError(t, err)
	})
}

func TestTheDefaultElectionIsClosedWithItsNodeAlone(t *testing.T) {
	withCluster(t, one, func(t *testing.T, c *testCluster) {
		time.Sleep(time.Second)
		n := c.Node("a")
		require.ErrorContains(t, n.Default().Close(t.Context()), "closed with it, by Node.Close")
		found, err := n.Lookup(cluster.DefaultGroup)
		require.NoError(t, err)
		require.ErrorContains(t, found.Close(cluster.Canceled), "closed with it, by Node.Close")
		require.True(t, n.IsLeader())
		_, err = n.NextLSN()
		require.NoError(t, err)
	})
}

func TestASecondCloseCanHurryTheFirst(t *testing.T) {
	withContest(t, func(t *testing.T, o *contest, l *cluster.Leadership) {
		first := make(chan error, 1)
		go func() { first <- l.Node().Close(context.Background()) }()
		<-l.Context().Done()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		began := time.Now()
		require.ErrorContains(t, l.Node().Close(ctx), "guarded work had not stopped")
		require.Zero(t, time.Since(began))
		require.Error(t, <-first)
		o.Closed(l.Node().ID())
		o.next().Release()
	})
}
