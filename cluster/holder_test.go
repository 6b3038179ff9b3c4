package cluster

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// Only who holds a leadership can say that its work has stopped: a second Run, as a
// reload of the configuration may start one, is refused until the first has returned.
func TestASecondRunWaitsForTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		w.edit = func(c *Config) { c.Election.AwaitCampaign = true }
		w.start("a", "b", "c")
		e := w.nodes["a"].Default()
		ctx, cancel := context.WithCancel(t.Context())
		working, returned := make(chan struct{}), make(chan error, 1)
		go func() {
			returned <- e.Run(ctx, Callbacks{OnStartedLeading: func(ctx context.Context, _ *Leadership) {
				close(working)
				<-ctx.Done()
				time.Sleep(300 * time.Millisecond)
			}})
		}()
		<-working
		time.Sleep(time.Second)
		cancel()
		synctest.Wait() // the work is stopping
		require.ErrorIs(t, e.Run(t.Context(), Callbacks{}), ErrCampaigning)
		require.Error(t, <-returned)
		l, err := e.Campaign(t.Context())
		require.NoError(t, err)
		l.Release()
		w.closeAll()
	})
}

// odd is an error of an application that is not well itself.
type odd struct{ text string }

func (o *odd) Error() string { return o.text }

func TestAnOddReasonHarmsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a")
		w.start("a")
		e := w.nodes["a"].Default()
		var none *odd // its text cannot be had
		require.NoError(t, e.SetFit(none))
		require.Contains(t, e.Status().Unfit, "*cluster.odd")
		require.NoError(t, e.SetFit(&odd{}))
		require.Equal(t, "no reason given", e.Status().Unfit)
		require.NoError(t, e.SetFit(nil))
		require.Empty(t, e.Status().Unfit)
		w.closeAll()
	})
}

func TestAnElectionIsClosedAsSoonAsTheWorkOfItsRunHasStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		w.start("a", "b", "c")
		x := w.open("x", nil)
		ended := make(chan error, len(x))
		for _, e := range x {
			go func() { ended <- e.Run(t.Context(), Callbacks{OnStartedLeading: untilToldToStop}) }()
		}
		time.Sleep(election)
		began := time.Now()
		require.NoError(t, x[leaderOf(t, x)].Close(t.Context()))
		require.Zero(t, time.Since(began))
		require.ErrorIs(t, <-ended, ErrClosed)
		w.closeAll()
	})
}

func TestNothingIsHandedOverForAContextThatHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, l := startedContest(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, l.e.Transfer(ctx, ""), context.Canceled)
		require.ErrorIs(t, l.e.StepDown(ctx, time.Minute), context.Canceled)
		require.ErrorIs(t, l.e.Resign(ctx), context.Canceled)
		time.Sleep(election)
		require.True(t, l.Valid())
		require.NoError(t, l.Context().Err())
		l.Release()
		o.closeAll()
	})
}

// However a leadership ends, Done is closed, so that work which is stuck can end its
// process.
func TestDoneIsClosedWithoutALease(t *testing.T) {
	for name, end := range map[string]func(n *Node){
		"close": func(n *Node) { n.Close(context.Background()) },
		"fail":  func(n *Node) { n.call(func() { n.fail(errors.New("disk gone")) }) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, "a")
				w.start("a")
				l := w.campaign("a").next()
				l.giveUp() // as the end of Run's ctx does; the work is stuck
				end(w.nodes["a"])
				select {
				case <-l.Done():
				case <-time.After(time.Minute):
					require.Fail(t, "Done is open")
				}
				w.closeAll()
			})
		})
	}
}

func TestStuckWorkIsWaitedForOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, l := startedContest(t)
		l.giveUp()
		<-l.Done()
		began := time.Now()
		next := o.next()
		require.Less(t, time.Since(began), article.HeartbeatBroadcast, "not for another lease")
		next.Release()
		l.Release()
		o.closeAll()
	})
}

func TestAWaitingRunLearnsWhyTheNodeFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		w.start("a")
		ended := make(chan error, 1)
		go func() { ended <- w.nodes["a"].Default().Run(t.Context(), Callbacks{}) }()
		time.Sleep(election)
		w.nodes["a"].call(func() { w.nodes["a"].fail(errors.New("input/output error")) })
		err := <-ended
		require.ErrorContains(t, err, "input/output error")
		require.NotErrorIs(t, err, ErrClosed)
		w.closeAll()
	})
}

func TestAHastyCloseWithoutWorkIsNoError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		w := newWorld(t, "a", "b", "c")
		w.start("a", "b", "c")
		for range 20 {
			for _, e := range w.open("x", nil) {
				require.NoError(t, e.Close(ctx))
			}
		}
		w.closeAll()
	})
}

func TestResignFromOutsideWaitsForTheWorkAndEndsRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		w.start("a", "b", "c")
		ended := map[NodeID]chan error{}
		stopped := make(chan time.Time, 3)
		for id, n := range w.nodes {
			result := make(chan error, 1)
			ended[id] = result
			go func() {
				result <- n.Default().Run(t.Context(), Callbacks{OnStartedLeading: func(ctx context.Context, _ *Leadership) {
					<-ctx.Done()
					time.Sleep(100 * time.Millisecond)
					stopped <- time.Now()
				}})
			}()
		}
		time.Sleep(election)
		old := w.leader()
		require.NoError(t, old.Default().Resign(t.Context()))
		require.Equal(t, <-stopped, time.Now())
		require.ErrorIs(t, <-ended[old.cfg.Node], ErrResigned)
		time.Sleep(election)
		next := w.leader()
		require.NotEqual(t, old, next)
		for id, n := range w.nodes {
			if n != old {
				require.NoError(t, n.Default().Resign(t.Context()))
				require.ErrorIs(t, <-ended[id], ErrResigned)
			}
		}
		w.closeAll()
	})
}

func TestAnElectionIsNotOpenedAgainBesideItsOldWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a")
		w.start("a")
		x := w.open("x", nil)["a"]
		l, err := x.Campaign(t.Context())
		require.NoError(t, err)
		require.NoError(t, x.Close(t.Context())) // waits until the deadline, and no longer
		_, err = w.nodes["a"].Election("x", ElectionConfig{})
		require.ErrorIs(t, err, ErrCampaigning)
		l.Release()
		_, err = w.nodes["a"].Election("x", ElectionConfig{})
		require.NoError(t, err)
		w.closeAll()
	})
}

func TestASecondCloseCanHurryTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, l := startedContest(t)
		first := make(chan error, 1)
		go func() { first <- l.node().Close(context.Background()) }()
		<-l.Context().Done()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		began := time.Now()
		require.ErrorContains(t, l.node().Close(ctx), "guarded work had not stopped")
		require.Zero(t, time.Since(began))
		require.Error(t, <-first)
		delete(o.nodes, l.node().cfg.Node)
		o.next().Release()
		o.closeAll()
	})
}
