package cluster_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/clustertest"
	"github.com/bmqelect/bmqelect/cluster/internal/testhook"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/lsn"
	"github.com/stretchr/testify/require"
)

func TestCampaignReturnsALeadershipThatExcludesAllOthers(t *testing.T) {
	withContest(t, func(t *testing.T, o *contest, l *cluster.Leadership) {
		require.True(t, l.Valid())
		require.NoError(t, l.Context().Err())
		require.Equal(t, elector.ReasonNone, l.Reason())
		require.Equal(t, l.Node().Status().Groups[0].Term, l.Term())
		left := time.Until(l.Deadline())
		require.Greater(t, left, articleMargin)
		require.LessOrEqual(t, left, article.Lease)

		first, err := l.NextLSN()
		require.NoError(t, err)
		second, err := l.NextLSN()
		require.NoError(t, err)
		require.Equal(t, lsn.LSN{Term: l.Term(), Counter: 1}, first)
		require.Equal(t, lsn.LSN{Term: l.Term(), Counter: 2}, second)

		time.Sleep(time.Second)
		for _, id := range o.others(l.Node()) {
			require.Equal(t, second, o.Node(id).Status().Groups[0].LSN, "heartbeats carry the newest")
			_, err := o.Node(id).NextLSN()
			require.ErrorIs(t, err, cluster.ErrNotLeader)
		}
		time.Sleep(time.Minute) // heartbeats move the deadline on
		require.True(t, l.Valid())
		require.NoError(t, l.Context().Err())
		require.Empty(t, o.won, "nobody else was given leadership")
		l.Release()
	})
}

// cutOff isolates the leader, and waits until its work is told to stop.
func cutOff(t *testing.T, o *contest, l *cluster.Leadership) {
	t.Helper()
	o.Isolate(l.Node().ID())
	select {
	case <-l.Context().Done():
	case <-time.After(time.Minute): // of virtual time
		require.Fail(t, "the work was not told to stop")
	}
}

func TestTheContextEndsTheMarginBeforeTheLease(t *testing.T) {
	withContest(t, func(t *testing.T, o *contest, l *cluster.Leadership) {
		cutOff(t, o, l)
		deadline := l.Deadline()
		require.Equal(t, articleMargin, time.Until(deadline))
		require.Equal(t, elector.LeaseExpired, l.Reason())
		var why *cluster.EndedError
		require.ErrorAs(t, context.Cause(l.Context()), &why)
		require.Equal(t, cluster.EndedError{l.Node().ID(), cluster.DefaultGroup, l.Term(),
			elector.LeaseExpired}, *why)
		require.True(t, l.Valid(), "the work may stop in order")
		_, err := l.NextLSN()
		require.NoError(t, err)

		<-l.Done()
		require.Equal(t, deadline, time.Now())
		require.False(t, l.Valid())
		_, err = l.NextLSN()
		require.ErrorIs(t, err, cluster.ErrNotLeader)
	})
}

func TestADriverThatIsHeldUpMakesNobodyLate(t *testing.T) {
	var stuck atomic.Pointer[cluster.NodeID]
	var release chan struct{}
	hold := clustertest.Hooks(func(id cluster.NodeID, h *testhook.Hooks) {
		h.Gate = func() {
			if s := stuck.Load(); s != nil && *s == id {
				<-release
			}
		}
	})
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		release = make(chan struct{})
		o := c.campaign("a", "b", "c")
		l := o.next()
		id := l.Node().ID()
		stuck.Store(&id)

		<-l.Context().Done()
		require.Equal(t, articleMargin, time.Until(l.Deadline()))
		next := o.next() // the driver still hangs
		require.False(t, l.Valid())
		select {
		case <-l.Done():
		default:
			require.Fail(t, "the leadership should be over")
		}
		require.False(t, l.Node().IsLeader())
		_, err := l.NextLSN()
		require.ErrorIs(t, err, cluster.ErrNotLeader)
		require.Greater(t, next.Term(), l.Term())
		stuck.Store(nil)
		close(release)
		l.Release()
		next.Release()
	}, hold)
}

func TestWorkOfTwoNodesNeverOverlapsInAHandover(t *testing.T) {
	for reason, end := range map[elector.Reason]func(ctx context.Context, l *cluster.Leadership) error{
		elector.Transferred: func(ctx context.Context, l *cluster.Leadership) error {
			return l.Election().Transfer(ctx, "")
		},
		elector.Resigned: func(_ context.Context, l *cluster.Leadership) error {
			return l.Election().SetFit(errors.New("disk full"))
		},
		elector.Stopped: func(ctx context.Context, l *cluster.Leadership) error {
			return l.Node().Close(ctx)
		},
	} {
		t.Run(reason.String(), func(t *testing.T) {
			withContest(t, func(t *testing.T, o *contest, l *cluster.Leadership) {
				ended := make(chan error, 1)
				go func() { ended <- end(t.Context(), l) }()
				<-l.Context().Done()
				require.Equal(t, reason, l.Reason())

				const work = 200 * time.Millisecond // to stop; the lease lasts longer
				time.Sleep(work)
				require.True(t, l.Valid())
				require.Empty(t, o.won, "leadership is not ceded while the work goes on")
				began := time.Now()
				l.Release()
				next := o.next()
				require.Less(t, time.Since(began), article.MaxRandomWait/10,
					"then it is ceded at once, to a named successor")
				require.NotEqual(t, l.Node(), next.Node())
				require.NoError(t, <-ended)
				require.False(t, l.Valid())
				next.Release()
			})
		})
	}
}

// If a lease that was about to end is renewed after all, work is interrupted, but leadership stays.
func TestAfterABlinkTheSameNodeGoesOn(t *testing.T) {
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		o := c.campaign("a")
		l := o.next()
		time.Sleep(time.Second)
		cutOff(t, o, l)
		o.Heal() // within the margin
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		again, err := l.Again(ctx)
		require.NoError(t, err)
		require.Equal(t, l.Term(), again.Term())
		require.False(t, l.Valid(), "the old work has stopped")
		_, err = l.NextLSN()
		require.ErrorIs(t, err, cluster.ErrNotLeader, "an ended leadership has no part in the next")
		token, err := again.NextLSN()
		require.NoError(t, err)
		require.Equal(t, again.Term(), token.Term)
		again.Release()
	}, clustertest.Configure(func(cfg *cluster.Config) { // a lease that outlives a lost heartbeat
		cfg.Election.Timing = article
		cfg.Election.Timing.Lease = 1400 * time.Millisecond
		cfg.Election.AwaitCampaign = true
	}))
}

func TestReaffirmationRaisesTheTermOfALeadership(t *testing.T) {
	withContest(t, func(t *testing.T, o *contest, l *cluster.Leadership) {
		old := l.Term()
		n := l.Node()
		heard := elector.Message{Kind: elector.InvalidHeartbeat, Term: old + 5}
		l.Election().Hear(o.others(n)[0], heard, nil)
		time.Sleep(time.Second)
		require.Equal(t, old+6, l.Term())
		require.NoError(t, l.Context().Err())
		token, err := l.NextLSN()
		require.NoError(t, err)
		require.Equal(t, old+6, token.Term)
		l.Release()
	})
}

// No other node may learn that this one gives up while it still says that it leads.
func TestALeadershipIsOverBeforeTheOthersLearnIt(t *testing.T) {
	withContest(t, func(t *testing.T, o *contest, l *cluster.Leadership) {
		n, ceded := l.Node(), false
		n.OnSend(func(m elector.Message) {
			if m.Kind == elector.LeadershipCession {
				ceded = true
				require.False(t, n.IsLeader())
				require.False(t, l.Valid())
				require.Error(t, l.Context().Err())
			}
		})
		go l.Release()
		<-l.Done()
		time.Sleep(time.Millisecond)
		n.Do(func() { require.True(t, ceded) })
		l.Release()
	})
}

// If another node leads in a higher term, against all promises, the work ends at once.
func TestAPreemptedLeadershipEndsAtOnce(t *testing.T) {
	withContest(t, func(t *testing.T, o *contest, l *cluster.Leadership) {
		n := l.Node()
		heard := elector.Message{Kind: elector.LeaderHeartbeat, Term: l.Term() + 1, SentAt: 1}
		l.Election().Hear(o.others(n)[0], heard, func() {
			require.Error(t, l.Context().Err())
			require.False(t, l.Valid())
		})
		<-l.Done()
		require.Equal(t, elector.LeaderPreempted, l.Reason())
		l.Release()
	})
}

func TestALoneVoterLeadsWithoutALease(t *testing.T) {
	withCluster(t, one, func(t *testing.T, c *testCluster) {
		l, err := c.Node("a").Default().Campaign(t.Context())
		require.NoError(t, err)
		require.Zero(t, l.Deadline())
		require.True(t, l.Valid())
		go c.Node("a").Default().StepDown(context.Background(), time.Minute)
		<-l.Context().Done()
		require.Equal(t, article.Lease, time.Until(l.Deadline()), "the work has as long as a lease")
		<-l.Done()
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
