package cluster

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/lsn"
)

var article = elector.Article()

// articleMargin is the default stop margin of the article's timers.
const articleMargin = 250 * time.Millisecond

// contest is a world whose nodes all campaign.
type contest struct {
	*world
	won chan *Leadership // in the order in which they came
}

// campaign lets nodes campaign, once each.
func (w *world) campaign(ids ...NodeID) *contest {
	o := &contest{w, make(chan *Leadership, 100)}
	for _, id := range ids {
		o.join(w.nodes[id])
	}
	return o
}

func (o *contest) join(n *Node) {
	go func() {
		if l, err := n.Default().Campaign(context.Background()); err == nil {
			o.won <- l
		}
	}()
}

// started is a cluster of three in which every node campaigns, and the first
// leadership.
func startedContest(t *testing.T) (*contest, *Leadership) {
	w := newWorld(t, "a", "b", "c")
	w.start("a", "b", "c")
	o := w.campaign("a", "b", "c")
	l := o.next()
	time.Sleep(time.Second) // the others have acked heartbeats
	return o, l
}

// next is the next leadership that anybody gets.
func (o *contest) next() *Leadership {
	o.t.Helper()
	select {
	case l := <-o.won:
		return l
	case <-time.After(time.Minute):
		require.Fail(o.t, "nobody leads")
		return nil
	}
}

func (l *Leadership) node() *Node { return l.e.n }

func TestCampaignReturnsALeadershipThatExcludesAllOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, l := startedContest(t)
		require.True(t, l.Valid())
		require.NoError(t, l.Context().Err())
		require.Equal(t, elector.ReasonNone, l.Reason())
		require.Equal(t, l.node().Status().Groups[0].Term, l.Term())
		left := time.Until(l.Deadline())
		require.Greater(t, left, articleMargin)
		require.LessOrEqual(t, left, article.Lease)

		first, err := l.NextLSN()
		require.NoError(t, err)
		second, err := l.NextLSN()
		require.NoError(t, err)
		require.Equal(t, lsn.LSN{Term: l.Term(), Counter: 1}, first)
		require.Equal(t, lsn.LSN{Term: l.Term(), Counter: 2}, second)

		time.Sleep(time.Minute) // heartbeats move the deadline on
		require.True(t, l.Valid())
		require.NoError(t, l.Context().Err())
		require.Empty(t, o.won, "nobody else was given leadership")
		l.Release()
		o.closeAll()
	})
}

// cutOff isolates the leader, and waits until its work is told to stop.
func cutOff(o *contest, l *Leadership) {
	o.isolate(l.node().cfg.Node)
	<-l.Context().Done()
}

func TestTheContextEndsTheMarginBeforeTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, l := startedContest(t)
		cutOff(o, l)
		deadline := l.Deadline()
		require.Equal(t, articleMargin, time.Until(deadline))
		require.Equal(t, elector.LeaseExpired, l.Reason())
		var why *EndedError
		require.ErrorAs(t, context.Cause(l.Context()), &why)
		require.Equal(t, EndedError{l.node().cfg.Node, DefaultGroup, l.Term(), elector.LeaseExpired}, *why)
		require.True(t, l.Valid(), "the work may stop in order")
		_, err := l.NextLSN()
		require.NoError(t, err)

		<-l.Done()
		require.Equal(t, deadline, time.Now())
		require.False(t, l.Valid())
		_, err = l.NextLSN()
		require.ErrorIs(t, err, ErrNotLeader)
		o.closeAll()
	})
}

func TestADriverThatIsHeldUpMakesNobodyLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		var stuck atomic.Pointer[NodeID]
		release := make(chan struct{})
		w.hold = func(id NodeID) {
			if s := stuck.Load(); s != nil && *s == id {
				<-release
			}
		}
		w.start("a", "b", "c")
		o := w.campaign("a", "b", "c")
		l := o.next()
		id := l.node().cfg.Node
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
		require.False(t, l.node().IsLeader())
		_, err := l.NextLSN()
		require.ErrorIs(t, err, ErrNotLeader)
		require.Greater(t, next.Term(), l.Term())
		stuck.Store(nil)
		close(release)
		l.Release()
		next.Release()
		o.closeAll()
	})
}

// handovers are the ways to end a healthy leadership in favor of another node.
var handovers = map[string]struct {
	end  func(l *Leadership) error
	want elector.Reason
}{
	"transfer":  {func(l *Leadership) error { return l.e.Transfer(context.Background(), "") }, elector.Transferred},
	"step-down": {func(l *Leadership) error { return l.e.StepDown(context.Background(), time.Minute) }, elector.Resigned},
	"unfit":     {func(l *Leadership) error { return l.e.SetFit(errors.New("disk full")) }, elector.Resigned},
	"close":     {func(l *Leadership) error { return l.e.n.Close(context.Background()) }, elector.Stopped},
}

func TestWorkOfTwoNodesNeverOverlapsInAHandover(t *testing.T) {
	for name, h := range handovers {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o, l := startedContest(t)
				ended := make(chan error, 1)
				go func() { ended <- h.end(l) }()
				<-l.Context().Done()
				require.Equal(t, h.want, l.Reason())

				const work = 200 * time.Millisecond // to stop; the lease lasts longer
				time.Sleep(work)
				require.True(t, l.Valid())
				require.Empty(t, o.won, "leadership is not ceded while the work goes on")
				began := time.Now()
				l.Release()
				next := o.next()
				require.Less(t, time.Since(began), article.MaxRandomWait/10, "then it is ceded at once, to a named successor")
				require.NotEqual(t, l.node(), next.node())
				require.NoError(t, <-ended)
				require.False(t, l.Valid())
				next.Release()
				o.closeAll()
			})
		})
	}
}

func TestWorkThatDoesNotStopIsWaitedForUntilTheLeaseEnds(t *testing.T) {
	for name, h := range handovers {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o, l := startedContest(t)
				go h.end(l)
				<-l.Context().Done()
				deadline := l.Deadline()
				require.LessOrEqual(t, time.Until(deadline), article.Lease)
				next := o.next()
				require.False(t, time.Now().Before(deadline), "not before the lease of the work has ended")
				<-l.Done()
				next.Release()
				o.closeAll()
			})
		})
	}
}

func TestANodeWhoseWorkIsStuckDoesNotStandAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, l := startedContest(t)
		id := l.node().cfg.Node
		cutOff(o, l)
		next := o.next()
		o.faults[id].HealAll()
		time.Sleep(election)
		next.Release() // the third node is left, and the stuck one
		third := o.next()
		require.NotEqual(t, id, third.node().cfg.Node)
		third.Release() // nobody campaigns any more but the stuck one, which may not
		time.Sleep(election)
		require.Empty(t, o.won)
		l.Release()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		again, err := l.e.Campaign(ctx)
		require.NoError(t, err)
		again.Release()
		o.closeAll()
	})
}

// A lease that was about to end and was renewed after all costs an interruption,
// not the leadership.
func TestAfterABlinkTheSameNodeGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		w.edit = func(c *Config) { // a lease that outlives a lost heartbeat
			c.Election.Timing = article
			c.Election.Timing.Lease = 1400 * time.Millisecond
			c.Election.AwaitCampaign = true
		}
		w.start("a", "b", "c")
		o := w.campaign("a")
		l := o.next()
		time.Sleep(time.Second)
		cutOff(o, l)
		o.faults[l.node().cfg.Node].HealAll() // within the margin
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		again, err := l.Again(ctx)
		require.NoError(t, err)
		require.Equal(t, l.Term(), again.Term())
		require.False(t, l.Valid(), "the old work has stopped")
		_, err = l.NextLSN()
		require.ErrorIs(t, err, ErrNotLeader, "an ended leadership has no part in the next")
		token, err := again.NextLSN()
		require.NoError(t, err)
		require.Equal(t, again.Term(), token.Term)
		again.Release()
		o.closeAll()
	})
}

func TestReaffirmationRaisesTheTermOfALeadership(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, l := startedContest(t)
		old := l.Term()
		n := l.node()
		n.call(func() {
			n.step(l.e.g, elector.Received{From: o.others(n)[0], Message: elector.Message{Kind: elector.InvalidHeartbeat, Term: old + 5}})
		})
		time.Sleep(time.Second)
		require.Equal(t, old+6, l.Term())
		require.NoError(t, l.Context().Err())
		token, err := l.NextLSN()
		require.NoError(t, err)
		require.Equal(t, old+6, token.Term)
		l.Release()
		o.closeAll()
	})
}

// No other node may learn that this one gives up while it still says that it leads.
func TestALeadershipIsOverBeforeTheOthersLearnIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, l := startedContest(t)
		n, ceded := l.node(), false
		n.call(func() {
			send := n.send
			n.send = func(to NodeID, group string, m elector.Message) bool {
				if m.Kind == elector.LeadershipCession {
					ceded = true
					require.False(t, n.IsLeader())
					require.False(t, l.Valid())
					require.Error(t, l.Context().Err())
				}
				return send(to, group, m)
			}
		})
		go l.Release()
		<-l.Done()
		time.Sleep(time.Millisecond)
		n.call(func() { require.True(t, ceded) })
		l.Release()
		o.closeAll()
	})
}

// Should another node lead in a higher term, against all promises, the work ends at
// once.
func TestAPreemptedLeadershipEndsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, l := startedContest(t)
		n := l.node()
		n.call(func() {
			n.step(l.e.g, elector.Received{From: o.others(n)[0], Message: elector.Message{Kind: elector.LeaderHeartbeat, Term: l.Term() + 1, SentAt: 1}})
			require.Error(t, l.Context().Err())
			require.False(t, l.Valid())
		})
		<-l.Done()
		require.Equal(t, elector.LeaderPreempted, l.Reason())
		l.Release()
		o.closeAll()
	})
}

// A close that may not wait leaves without handing over: the work that goes on is
// alone until its lease has ended.
func TestACloseThatMayNotWaitHandsNothingOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, l := startedContest(t)
		n := l.node()
		deadline := make(chan time.Time, 1)
		go func() {
			<-l.Context().Done()
			deadline <- l.Deadline()
		}()
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		require.ErrorContains(t, n.Close(ctx), "guarded work had not stopped")
		delete(o.nodes, n.cfg.Node)
		require.Equal(t, elector.Stopped, l.Reason())
		<-l.Done() // nobody is left to end it later
		next := o.next()
		require.False(t, time.Now().Before(<-deadline))
		next.Release()
		o.closeAll()
	})
}

func TestAFailedDiskEndsALeadershipWithoutHandingOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, l := startedContest(t)
		n := l.node()
		n.call(func() { n.fail(errors.New("input/output error")) })
		<-l.Context().Done()
		require.Equal(t, elector.Stopped, l.Reason())
		deadline := l.Deadline()
		require.True(t, l.Valid(), "the work has until then")
		require.Equal(t, "DORMANT", n.Status().Groups[0].Role, "but the node takes no part any more")
		next := o.next()
		require.False(t, time.Now().Before(deadline))
		require.False(t, l.Valid())
		_, err := l.e.Campaign(t.Context())
		require.ErrorContains(t, err, "input/output error")
		next.Release()
		o.closeAll()
	})
}

func TestALoneVoterLeadsWithoutALease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a")
		w.start("a")
		l, err := w.nodes["a"].Default().Campaign(t.Context())
		require.NoError(t, err)
		require.Zero(t, l.Deadline())
		require.True(t, l.Valid())
		go w.nodes["a"].Default().StepDown(context.Background(), time.Minute)
		<-l.Context().Done()
		require.Equal(t, article.Lease, time.Until(l.Deadline()), "the work has as long as a lease")
		<-l.Done()
		w.closeAll()
	})
}
