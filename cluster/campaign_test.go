package cluster_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/clustertest"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/stretchr/testify/require"
)

func TestCampaignsThatCannotBe(t *testing.T) {
	withContest(t, func(t *testing.T, o *contest, l *cluster.Leadership) {
		leader, follower := l.Election(), o.Node(o.others(l.Node())[0]).Default()

		_, err := leader.Campaign(t.Context())
		require.ErrorIs(t, err, cluster.ErrCampaigning, "it holds a leadership that serves")
		_, err = follower.Campaign(t.Context())
		require.ErrorIs(t, err, cluster.ErrCampaigning, "one waits already")

		require.NoError(t, follower.Resign(t.Context()))
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errors.New("changed my mind"))
		_, err = follower.Campaign(ctx)
		require.ErrorContains(t, err, "changed my mind")
		ctx, done := context.WithTimeout(t.Context(), time.Minute)
		defer done()
		_, err = follower.Campaign(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded, "another node leads")

		never, err := l.Node().Election("never", cluster.ElectionConfig{NotCandidate: true})
		require.NoError(t, err)
		_, err = never.Campaign(t.Context())
		require.ErrorIs(t, err, cluster.ErrNotCandidate)

		require.NoError(t, never.Close(t.Context()))
		_, err = never.Campaign(t.Context())
		require.ErrorIs(t, err, cluster.ErrClosed)
		l.Release()
	})
}

func find(t *testing.T, n *cluster.Node, group string) *cluster.Election {
	e, err := n.Lookup(group)
	require.NoError(t, err)
	return e
}

func TestWaitingCampaignsEndWithTheElection(t *testing.T) {
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		for id, end := range map[cluster.NodeID]func(*cluster.Node){
			"a": func(n *cluster.Node) { require.NoError(t, n.Close(t.Context())) },
			"b": func(n *cluster.Node) { require.NoError(t, find(t, n, "own").Close(t.Context())) },
		} {
			n := c.Node(id)
			e, err := n.Election("own", cluster.ElectionConfig{})
			require.NoError(t, err)
			got := make(chan error, 1)
			go func() {
				_, err := e.Campaign(context.Background())
				got <- err
			}()
			synctest.Wait()
			end(n)
			require.ErrorIs(t, <-got, cluster.ErrClosed)
		}
	}, clustertest.Down("c")) // and never a leader, since both only wait
}

func TestResignHandsOverAndStaysBack(t *testing.T) {
	withContest(t, func(t *testing.T, o *contest, l *cluster.Leadership) {
		id := l.Node().ID()
		require.NoError(t, l.Election().Resign(t.Context()))
		require.Equal(t, elector.Resigned, l.Reason())
		next := o.next()
		require.NotEqual(t, id, next.Node().ID())
		for _, other := range o.others(l.Node()) {
			require.NoError(t, o.Node(other).Default().Resign(t.Context()))
		}
		_, err := l.Election().Campaign(t.Context())
		require.ErrorIs(t, err, cluster.ErrCampaigning, "its work has not been said to have stopped")
		l.Release()
		next.Release()
		time.Sleep(time.Minute)
		for _, n := range o.nodes() {
			require.False(t, n.IsLeader(), "whoever resigned stays back, even if nobody leads then")
			require.Contains(t, n.Status().Groups[0].Explanation, "nobody campaigns")
		}
		again, err := l.Election().Campaign(t.Context())
		require.NoError(t, err)
		again.Release()
		again.Release()
	})
}

func TestANodeThatAwaitsItsCampaignLeadsByThatAlone(t *testing.T) {
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		time.Sleep(time.Minute)
		for _, n := range c.nodes() {
			require.False(t, n.IsLeader())
		}
		l := c.campaign("b").next()
		require.Equal(t, c.Node("b"), l.Node())
		time.Sleep(time.Second)
		l.Release() // gives up, even if nobody else wants it
		require.False(t, l.Election().IsLeader())
		require.Equal(t, elector.Resigned, l.Reason())
	}, clustertest.Configure(awaitCampaign))
}

// A campaign whose context ends just when it succeeds leaves no leadership that
// nobody holds.
func TestACampaignThatIsWithdrawnHoldsNothing(t *testing.T) {
	withCluster(t, one, func(t *testing.T, c *testCluster) {
		e := c.Node("a").Default()
		l, err := e.EnterCampaign(t.Context())
		require.NoError(t, err)
		time.Sleep(election)
		require.True(t, l.Valid())
		require.EqualValues(t, 1, l.Term(), "a lone voter has not led before its campaign")
		l.Release()
		<-l.Done()
		require.False(t, e.IsLeader())
	}, clustertest.Configure(awaitCampaign))
}

func TestAnUnfitNodeNeitherStandsNorLeads(t *testing.T) {
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		old := c.elect()
		require.NoError(t, old.Default().SetFit(errors.New("no database")))
		time.Sleep(time.Second)
		next := c.leader()
		require.NotEqual(t, old, next)
		require.Equal(t, "no database", old.Status().Groups[0].Unfit)

		third := c.others(old)
		c.Node(third[0]).Default().SetFit(errors.New("no database"))
		c.Node(third[1]).Default().SetFit(errors.New("no database"))
		time.Sleep(time.Minute)
		last := c.leader() // an unfit one leads on while nobody else is fit
		require.NoError(t, old.Default().SetFit(nil))
		time.Sleep(time.Second)
		require.Equal(t, old, c.leader(), "handed over as soon as there is somebody")
		require.NotEqual(t, old, last)
		c.Crash(old.ID())
		time.Sleep(time.Minute)
		for _, n := range c.nodes() {
			require.False(t, n.IsLeader())
			require.Contains(t, n.Status().Groups[0].Explanation, "no database")
		}
		c.stopAll()
		require.ErrorIs(t, next.Default().SetFit(nil), cluster.ErrClosed)
	})
}

func TestStepDownRests(t *testing.T) {
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		old := c.elect()
		other := c.Node(map[cluster.NodeID]cluster.NodeID{"a": "b", "b": "a"}[old.ID()])
		require.ErrorIs(t, other.Default().StepDown(t.Context(), 0), cluster.ErrNotLeader)
		require.ErrorContains(t, old.Default().StepDown(t.Context(), -time.Second), "between 0 and 24h")
		require.True(t, old.IsLeader())
		began := time.Now()
		require.NoError(t, other.Default().StepDown(t.Context(), time.Second), "a follower only rests")
		require.Zero(t, time.Since(began), "nothing is waited for")
		time.Sleep(2 * time.Second) // rested, and the leader knows

		require.NoError(t, old.Default().StepDown(t.Context(), time.Minute))
		require.False(t, old.IsLeader())
		time.Sleep(time.Second)
		require.True(t, other.IsLeader())
		require.InDelta(t, 59, float64(old.Status().Groups[0].RestLeft), 1)
		c.Crash(other.ID())
		time.Sleep(50 * time.Second)
		require.False(t, old.IsLeader(), "it rests, even if nobody else could lead")
		require.Contains(t, old.Status().Groups[0].Explanation, "stepped down")
		time.Sleep(20 * time.Second)
		require.True(t, old.IsLeader())
	}, clustertest.Configure(
		func(cfg *cluster.Config) { cfg.Election.NotCandidate = cfg.Node == "c" }))
}

// TestCandidacyChangesAtRunTime: a leader that is no longer a candidate hands over to a node that
// has become one. The Run that waited there then leads.
func TestCandidacyChangesAtRunTime(t *testing.T) {
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		require.Equal(t, cluster.NodeID("a"), c.AwaitLeader())
		worked := make(chan struct{})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			ended <- c.Node("b").Default().Run(ctx, cluster.Callbacks{
				OnStartedLeading: func(ctx context.Context, _ *cluster.Leadership) error {
					close(worked)
					<-ctx.Done()
					return nil
				},
			})
		}()
		require.False(t, c.Node("b").Status().Groups[0].Candidate)
		require.NoError(t, c.Node("a").Default().SetCandidate(false))
		time.Sleep(time.Minute)
		require.Equal(t, cluster.NodeID("a"), c.Leader(), "nobody can take over")
		require.Contains(t, c.Node("a").Status().Groups[0].Explanation,
			"until another node can take over: it is not a candidate")
		require.NoError(t, c.Node("b").Default().SetCandidate(true))
		require.True(t, c.Node("b").Status().Groups[0].Candidate)
		c.Await("b to lead", func() bool { return c.Leader() == "b" })
		c.Await("its work", func() bool {
			select {
			case <-worked:
				return true
			default:
				return false
			}
		})
		stop()
		require.NoError(t, <-ended)
		c.Restart("a")
		require.True(t, c.Node("a").Status().Groups[0].Candidate, "what the configuration says")
	}, clustertest.Configure(func(cfg *cluster.Config) {
		cfg.Election.NotCandidate = cfg.Node != "a"
	}))
}

// TestPriorityChangesAtRunTime: the leader learns the priorities of others by their acks, and it
// takes its own new priority into account.
func TestPriorityChangesAtRunTime(t *testing.T) {
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		old := c.AwaitLeader()
		next := c.others(c.Node(old))[1]
		require.NoError(t, c.Node(next).Default().SetPriority(7))
		c.Await("the preferred node to lead", func() bool { return c.Leader() == next })
		require.Equal(t, 7, c.Node(next).Status().Groups[0].Priority)
		require.NoError(t, c.Node(old).Default().SetPriority(6))
		time.Sleep(time.Minute)
		require.Equal(t, next, c.Leader())
		require.NoError(t, c.Node(next).Default().SetPriority(5))
		c.Await("the preferred node to lead", func() bool { return c.Leader() == old })
	}, clustertest.Configure(func(cfg *cluster.Config) { cfg.Election.Takeover = 10 * time.Second }))
}

func TestAnObserverIsNoCandidate(t *testing.T) {
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		require.ErrorIs(t, c.Node("c").Default().SetCandidate(true), cluster.ErrNotCandidate)
		require.NoError(t, c.Node("c").Default().SetCandidate(false))
		c.Stop("a")
		require.ErrorIs(t, c.Node("a").Default().SetPriority(1), cluster.ErrClosed)
	}, clustertest.Configure(func(cfg *cluster.Config) { cfg.Voters = []cluster.NodeID{"a", "b"} }))
}

// odd is an error whose method panics if it is nil, and may return no text.
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
