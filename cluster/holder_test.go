package cluster_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/clustertest"
)

// Only who holds a leadership can say that its work has stopped: a second Run, as a
// reload of the configuration may start one, is refused until the first has returned.
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

// odd is an error of an application that is not well itself.
type odd struct{ text string }

func (o *odd) Error() string { return o.text }

func TestAnOddReasonHarmsNobody(t *testing.T) {
	withCluster(t, one, func(t *testing.T, c *testCluster) {
		e := c.Node("a").Default()
		var none *odd // its text cannot be had
		require.NoError(t, e.SetFit(none))
		require.Contains(t, e.Status().Unfit, "*cluster_test.odd")
		require.NoError(t, e.SetFit(&odd{}))
		require.Equal(t, "no reason given", e.Status().Unfit)
		require.NoError(t, e.SetFit(nil))
		require.Empty(t, e.Status().Unfit)
	})
}

func TestAnElectionIsClosedAsSoonAsTheWorkOfItsRunHasStopped(t *testing.T) {
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		x := c.open("x", nil)
		ended := make(chan error, len(x))
		for _, e := range x {
			go func() { ended <- e.Run(t.Context(), cluster.Callbacks{OnStartedLeading: untilToldToStop}) }()
		}
		time.Sleep(election)
		began := time.Now()
		require.NoError(t, x[c.leader("x").ID()].Close(t.Context()))
		require.Zero(t, time.Since(began))
		require.ErrorIs(t, <-ended, cluster.ErrClosed)
	})
}

func TestNothingIsHandedOverForAContextThatHasEnded(t *testing.T) {
	withContest(t, func(t *testing.T, o *contest, l *cluster.Leadership) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, l.Election().Transfer(ctx, ""), context.Canceled)
		require.ErrorIs(t, l.Election().StepDown(ctx, time.Minute), context.Canceled)
		require.ErrorIs(t, l.Election().Resign(ctx), context.Canceled)
		time.Sleep(election)
		require.True(t, l.Valid())
		require.NoError(t, l.Context().Err())
		l.Release()
	})
}

// However a leadership ends, Done is closed, so that work which is stuck can end its
// process.
func TestDoneIsClosedWithoutALease(t *testing.T) {
	for name, end := range map[string]func(n *cluster.Node){
		"close": func(n *cluster.Node) { n.Close(context.Background()) },
		"fail":  func(n *cluster.Node) { n.Fail(errors.New("disk gone")) },
	} {
		t.Run(name, func(t *testing.T) {
			withCluster(t, one, func(t *testing.T, c *testCluster) {
				l := c.campaign("a").next()
				l.GiveUp() // as the end of Run's ctx does; the work is stuck
				end(c.Node("a"))
				select {
				case <-l.Done():
				case <-time.After(time.Minute):
					require.Fail(t, "Done is open")
				}
			})
		})
	}
}

func TestStuckWorkIsWaitedForOnce(t *testing.T) {
	withContest(t, func(t *testing.T, o *contest, l *cluster.Leadership) {
		l.GiveUp()
		<-l.Done()
		began := time.Now()
		next := o.next()
		require.Less(t, time.Since(began), article.HeartbeatBroadcast, "not for another lease")
		require.NotEqual(t, l.Node(), next.Node())
		o.join(next.Node())
		next.Release()
		third := o.next()
		require.NotEqual(t, l.Node(), third.Node(), "its own work keeps it from leading")
		third.Release()
		l.Release()
	})
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

func TestAHastyCloseWithoutWorkIsNoError(t *testing.T) {
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for range 20 {
			for _, e := range c.open("x", nil) {
				require.NoError(t, e.Close(ctx))
			}
		}
	})
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
