package cluster

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster/internal/store"
	"github.com/bmqelect/bmqelect/lsn"
)

// failDisk ends a node's part in all elections as a failed fsync does.
func failDisk(n *Node) { n.call(func() { n.fail(errors.New("input/output error")) }) }

func closeAtOnce(t *testing.T, n *Node) {
	require.Error(t, n.Close(canceled))
}

// The ways in which a node can leave while its guarded work goes on.
var cuts = map[string]func(*testing.T, *Node){
	"close without waiting": closeAtOnce,
	"close whose ctx ends": func(t *testing.T, n *Node) {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
		defer cancel()
		require.ErrorIs(t, n.Close(ctx), context.DeadlineExceeded)
	},
	"failed disk, then close": func(t *testing.T, n *Node) {
		failDisk(n)
		closeAtOnce(t, n)
	},
	"failed disk, then close that waits": func(t *testing.T, n *Node) {
		failDisk(n)
		require.NoError(t, n.Close(context.Background()))
	},
	"crossed closes": func(t *testing.T, n *Node) {
		go n.Close(context.Background())
		time.Sleep(time.Millisecond)
		closeAtOnce(t, n)
	},
}

// A node that starts again on its directory proves to the others that its old process
// is gone. Guarded work of that process may go on until its deadline, if the node left
// without waiting: nobody else leads before.
func TestNobodyLeadsBesideTheWorkOfANodeThatLeftAndStartedAgain(t *testing.T) {
	for name, leave := range cuts {
		t.Run(name, func(t *testing.T) {
			for range 10 { // which node waits for how long is chance
				synctest.Test(t, func(t *testing.T) { leaveAndStartAgain(t, leave) })
			}
		})
	}
}

func leaveAndStartAgain(t *testing.T, leave func(*testing.T, *Node)) {
	w := newWorld(t, "a", "b", "c")
	w.start("a", "b", "c")
	time.Sleep(election)
	old := w.leader()
	l, err := old.Default().Campaign(t.Context())
	require.NoError(t, err)
	deadline := make(chan time.Time, 1)
	go func() {
		<-l.Context().Done()
		deadline <- l.Deadline()
	}()
	leave(t, old)
	delete(w.nodes, old.cfg.Node)
	end := <-deadline
	started := make(chan struct{})
	again := &world{t: t, net: w.net, dir: w.dir, voters: w.voters, peers: w.peers,
		nodes: map[NodeID]*Node{}, faults: w.faults, edit: w.edit, hold: w.hold}
	go func() {
		defer close(started)
		again.start(old.cfg.Node)
	}()
	for time.Now().Before(end) {
		for _, n := range w.nodes {
			require.False(t, n.IsLeader(), "%s leads %s too early", n.cfg.Node, time.Until(end))
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
	w.nodes[old.cfg.Node] = again.nodes[old.cfg.Node]
	<-l.Done()
	require.False(t, l.Valid())
	time.Sleep(election)
	w.leader()
	w.closeAll()
}

func (w *world) config(id NodeID) Config {
	return Config{Node: id, Voters: w.voters, DataDir: filepath.Join(w.dir, string(id)), MeshAddr: w.peers[id]}
}

func TestAStartThatMayNotWaitSaysHowLongTheDirectoryIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, l := startedContest(t)
		n := l.node()
		err := n.Close(canceled)
		until := l.Deadline().Format(time.StampMilli)
		require.ErrorContains(t, err, "stays locked until the guarded work has stopped, at the latest until "+until)
		delete(o.nodes, n.cfg.Node)
		ctx, cancel := context.WithTimeout(o.context(n.cfg.Node), 10*time.Millisecond)
		defer cancel()
		began := time.Now()
		_, err = Start(ctx, o.config(n.cfg.Node))
		require.Equal(t, 10*time.Millisecond, time.Since(began))
		require.ErrorIs(t, err, store.ErrLocked)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "guarded work of node "+string(n.cfg.Node))
		require.ErrorContains(t, err, until)
		<-l.Done()
		o.closeAll()
	})
}

func TestReleasedWorkFreesTheDirectoryAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, l := startedContest(t)
		id := l.node().cfg.Node
		closeAtOnce(t, l.node())
		require.True(t, time.Now().Before(l.Deadline()))
		l.Release()
		<-l.Done()
		began := time.Now()
		o.start(id)
		require.Zero(t, time.Since(began))
		o.closeAll()
	})
}

// Of several elections the work with the latest deadline counts, also of one that was
// closed by itself before.
func TestTheDirectoryIsHeldForTheWorkOfEveryElection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a")
		w.start("a")
		n := w.nodes["a"]
		var works []*Leadership
		for _, group := range []string{"x", "y", "z"} {
			e, err := n.Election(group, ElectionConfig{})
			require.NoError(t, err)
			l, err := e.Campaign(t.Context())
			require.NoError(t, err)
			works = append(works, l)
		}
		require.ErrorContains(t, works[0].e.Close(canceled), "guarded work had not stopped")
		time.Sleep(100 * time.Millisecond)
		closeAtOnce(t, n)
		works[1].Release()
		began := time.Now()
		w.start("a") // lone voters need no lease: their work has the time of one to stop
		require.Equal(t, article.Lease, time.Since(began))
		for _, l := range works {
			<-l.Done()
			require.False(t, l.Valid())
		}
		w.closeAll()
	})
}

// hangWrites makes the writes of a node hang until the returned function is called.
func hangWrites(t *testing.T, n *Node) (goOn func()) {
	block := make(chan struct{})
	n.persister.mu.Lock()
	defer n.persister.mu.Unlock()
	write := n.persister.write
	n.persister.write = func(terms map[string]lsn.Term) error {
		<-block
		return write(terms)
	}
	goOn = sync.OnceFunc(func() { close(block) })
	t.Cleanup(goOn)
	return goOn
}

func TestCloseReturnsAlthoughTheDiskHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		w.start("a", "b", "c")
		time.Sleep(election)
		leader := w.leader()
		hung := w.nodes[w.others(leader)[0]]
		goOn := hangWrites(t, hung)
		w.crash(leader.cfg.Node) // the next election raises the term
		time.Sleep(election)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := returnsWithin(t, time.Second+2*patience, func() error { return hung.Close(ctx) })
		require.ErrorContains(t, err, "a write to its disk has not returned")
		require.ErrorContains(t, err, hung.cfg.DataDir)
		require.ErrorIs(t, hung.Err(), ErrClosed)

		_, err = Start(w.context(hung.cfg.Node), w.config(hung.cfg.Node))
		require.ErrorIs(t, err, store.ErrLocked, "what hangs may still write")
		require.ErrorContains(t, err, "a write to its disk has not returned")
		goOn()
		require.NoError(t, hung.Close(context.Background()))
		w.start(hung.cfg.Node)
		w.closeAll()
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

// Whatever takes a ctx returns with it, also if the node hangs, as it does when its
// logger blocks: with room in the driver's inbox and without.
func TestEveryCallReturnsWithItsContextAlthoughTheNodeHangs(t *testing.T) {
	for name, call := range map[string]func(ctx context.Context, l *Leadership, other *Election) error{
		"Campaign": func(ctx context.Context, _ *Leadership, other *Election) error {
			_, err := other.Campaign(ctx)
			return err
		},
		"Again": func(ctx context.Context, l *Leadership, _ *Election) error {
			_, err := l.Again(ctx)
			return err
		},
		"Run": func(ctx context.Context, _ *Leadership, other *Election) error {
			return other.Run(ctx, Callbacks{OnNewLeader: func(Leader) {}})
		},
		"Resign":   func(ctx context.Context, l *Leadership, _ *Election) error { return l.e.Resign(ctx) },
		"StepDown": func(ctx context.Context, l *Leadership, _ *Election) error { return l.e.StepDown(ctx, time.Minute) },
		"Transfer": func(ctx context.Context, l *Leadership, _ *Election) error { return l.e.Transfer(ctx, "") },
		"Leader": func(ctx context.Context, _ *Leadership, other *Election) error {
			_, err := other.Leader(ctx)
			return err
		},
		"Election.Close": func(ctx context.Context, _ *Leadership, other *Election) error { return other.Close(ctx) },
		"Node.Close":     func(ctx context.Context, l *Leadership, _ *Election) error { return l.node().Close(ctx) },
		"Release": func(_ context.Context, l *Leadership, _ *Election) error {
			l.Release()
			<-l.Done()
			return errHeldUp
		},
	} {
		for _, full := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, inbox full: %t", name, full), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					o, l := startedContest(t)
					other, err := l.node().Election("other", ElectionConfig{})
					require.NoError(t, err)
					goOn := hang(t, l.node(), full)
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					defer cancel()
					err = returnsWithin(t, time.Second+2*patience, func() error { return call(ctx, l, other) })
					require.Error(t, err)
					goOn()
					time.Sleep(election)
					l.Release()
					_ = l.node().Close(context.Background()) // of Node.Close it has the old error
					delete(o.nodes, l.node().cfg.Node)
					o.closeAll()
				})
			})
		}
	}
}

// hang lets a node's driver hang until the returned function is called.
func hang(t *testing.T, n *Node, full bool) (goOn func()) {
	block := make(chan struct{})
	go n.call(func() { <-block })
	synctest.Wait()
	for full {
		select {
		case n.inbox <- event{do: func() {}}:
		default:
			full = false
		}
	}
	goOn = sync.OnceFunc(func() { close(block) })
	t.Cleanup(goOn)
	return goOn
}

// What a call left in the inbox of a node that hung does not happen after the call has
// returned.
func TestACampaignThatGaveUpIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a")
		w.start("a")
		time.Sleep(time.Second)
		e := w.nodes["a"].Default()
		goOn := hang(t, w.nodes["a"], false)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := e.Campaign(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		goOn()
		l, err := e.Campaign(t.Context())
		require.NoError(t, err, "no other campaign is left")
		l.Release()
		w.closeAll()
	})
}

func TestAnElectionIsNotOpenedForEverOnADiskThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a")
		w.start("a")
		time.Sleep(time.Second)
		n := w.nodes["a"]
		goOn := hangWrites(t, n)
		n.persister.request(DefaultGroup, 1000)
		err := returnsWithin(t, openTime, func() error {
			_, err := n.Election("x", ElectionConfig{})
			return err
		})
		require.ErrorContains(t, err, "the disk has not answered within 10s")
		_, err = n.Election("x", ElectionConfig{})
		require.ErrorIs(t, err, ErrOpen, "it is being opened still")
		goOn()
		time.Sleep(time.Second)
		_, err = n.Lookup("x")
		require.ErrorIs(t, err, ErrNotOpen, "the call had failed")
		_, err = n.Election("x", ElectionConfig{})
		require.NoError(t, err)
		w.closeAll()
	})
}

func TestTheDefaultElectionIsClosedWithItsNodeAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a")
		w.start("a")
		time.Sleep(time.Second)
		n := w.nodes["a"]
		require.ErrorContains(t, n.Default().Close(t.Context()), "closed with it, by Node.Close")
		found, err := n.Lookup(DefaultGroup)
		require.NoError(t, err)
		require.ErrorContains(t, found.Close(canceled), "closed with it, by Node.Close")
		require.True(t, n.IsLeader())
		_, err = n.NextLSN()
		require.NoError(t, err)
		w.closeAll()
	})
}

// A node forgets work that was cut off and has stopped, however many elections it
// opens and closes.
func TestWorkThatWasCutOffAndHasStoppedIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a")
		w.start("a")
		for range 10 {
			e, err := w.nodes["a"].Election("jobs", ElectionConfig{AwaitCampaign: true})
			require.NoError(t, err)
			l, err := e.Campaign(t.Context())
			require.NoError(t, err)
			require.ErrorContains(t, e.Close(canceled), "guarded work had not stopped")
			l.Release()
		}
		w.nodes["a"].call(func() { require.Len(t, w.nodes["a"].cutWork, 1) })
		w.closeAll()
	})
}
