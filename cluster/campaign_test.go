package cluster

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
)

func TestCampaignsThatCannotBe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, l := startedContest(t)
		leader, follower := l.e, o.nodes[o.others(l.node())[0]].Default()

		_, err := leader.Campaign(t.Context())
		require.ErrorIs(t, err, ErrCampaigning, "it holds a leadership that serves")
		_, err = follower.Campaign(t.Context())
		require.ErrorIs(t, err, ErrCampaigning, "one waits already")

		require.NoError(t, follower.Resign(t.Context()))
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errors.New("changed my mind"))
		_, err = follower.Campaign(ctx)
		require.ErrorContains(t, err, "changed my mind")
		ctx, done := context.WithTimeout(t.Context(), time.Minute)
		defer done()
		_, err = follower.Campaign(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded, "another node leads")

		never, err := l.node().Election("never", ElectionConfig{NotCandidate: true})
		require.NoError(t, err)
		_, err = never.Campaign(t.Context())
		require.ErrorIs(t, err, ErrNotCandidate)

		require.NoError(t, never.Close(t.Context()))
		_, err = never.Campaign(t.Context())
		require.ErrorIs(t, err, ErrClosed)
		l.Release()
		o.closeAll()
	})
}

func find(t *testing.T, n *Node, group string) *Election {
	e, err := n.Lookup(group)
	require.NoError(t, err)
	return e
}

func TestWaitingCampaignsEndWithTheElection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		w.start("a", "b") // and never a leader, since both only wait
		for id, end := range map[NodeID]func(*Node){
			"a": func(n *Node) { require.NoError(t, n.Close(t.Context())) },
			"b": func(n *Node) { require.NoError(t, find(t, n, "own").Close(t.Context())) },
		} {
			n := w.nodes[id]
			e, err := n.Election("own", ElectionConfig{})
			require.NoError(t, err)
			got := make(chan error, 1)
			go func() {
				_, err := e.Campaign(context.Background())
				got <- err
			}()
			synctest.Wait()
			end(n)
			require.ErrorIs(t, <-got, ErrClosed)
		}
		w.closeAll()
	})
}

func TestResignHandsOverAndStaysBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, l := startedContest(t)
		id := l.node().cfg.Node
		require.NoError(t, l.e.Resign(t.Context()))
		require.Equal(t, elector.Resigned, l.Reason())
		next := o.next()
		require.NotEqual(t, id, next.node().cfg.Node)
		for _, other := range o.others(l.node()) {
			require.NoError(t, o.nodes[other].Default().Resign(t.Context()))
		}
		_, err := l.e.Campaign(t.Context())
		require.ErrorIs(t, err, ErrCampaigning, "its work has not been said to have stopped")
		l.Release()
		next.Release()
		time.Sleep(time.Minute)
		for _, n := range o.nodes {
			require.False(t, n.IsLeader(), "whoever resigned stays back, even if nobody leads then")
			require.Contains(t, n.Status().Groups[0].Explanation, "nobody campaigns")
		}
		again, err := l.e.Campaign(t.Context())
		require.NoError(t, err)
		again.Release()
		again.Release()
		o.closeAll()
	})
}

func TestANodeThatAwaitsItsCampaignDoesNotStand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		w.edit = func(c *Config) { c.Election.AwaitCampaign = true }
		w.start("a", "b", "c")
		time.Sleep(time.Minute)
		for _, n := range w.nodes {
			require.False(t, n.IsLeader())
		}
		o := w.campaign("b")
		require.Equal(t, w.nodes["b"], o.next().node())
		w.closeAll()
	})
}

func TestALoneVoterThatAwaitsItsCampaignLeadsByThatAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a")
		w.edit = func(c *Config) { c.Election.AwaitCampaign = true }
		w.start("a")
		l := w.campaign("a").next()
		require.EqualValues(t, 1, l.Term(), "it had not led before")
		l.Release()
		w.closeAll()
	})
}

// A campaign whose context ends just when it succeeds leaves no leadership that
// nobody holds.
func TestACampaignThatIsWithdrawnHoldsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a")
		w.edit = func(c *Config) { c.Election.AwaitCampaign = true }
		w.start("a")
		e := w.nodes["a"].Default()
		l, err := e.enterCampaign(t.Context(), 0)
		require.NoError(t, err)
		time.Sleep(election)
		require.True(t, l.Valid())
		l.Release()
		<-l.Done()
		require.False(t, e.IsLeader())
		w.closeAll()
	})
}

// A step that was under way when the campaign began knows nothing of what the campaign
// asks for: it must not grant it.
func TestACampaignIsNotGrantedByAStepThatBeganBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, l := startedContest(t)
		var next *Leadership
		l.node().call(func() {
			var err error
			l.giveUp()
			next, err = l.e.enterCampaign(t.Context(), l.id)
			require.NoError(t, err)
			require.NoError(t, l.e.g.publish(&elector.Effects{}))
			require.Empty(t, next.answer)
		})
		require.NoError(t, <-next.answer)
		next.Release()
		o.closeAll()
	})
}

// Who releases a leadership that serves gives it up, even if nobody else wants it.
func TestReleaseGivesUpWithoutASuccessor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		w.edit = func(c *Config) { c.Election.AwaitCampaign = true }
		w.start("a", "b", "c")
		l := w.campaign("b").next()
		time.Sleep(time.Second)
		l.Release()
		require.False(t, l.e.IsLeader())
		require.Equal(t, elector.Resigned, l.Reason())
		w.closeAll()
	})
}

func TestAnUnfitNodeNeitherStandsNorLeads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		w.start("a", "b", "c")
		time.Sleep(election)
		old := w.leader()
		require.NoError(t, old.Default().SetFit(errors.New("no database")))
		time.Sleep(time.Second)
		next := w.leader()
		require.NotEqual(t, old, next)
		require.Equal(t, "no database", old.Status().Groups[0].Unfit)

		third := w.others(old)
		w.nodes[third[0]].Default().SetFit(errors.New("no database"))
		w.nodes[third[1]].Default().SetFit(errors.New("no database"))
		time.Sleep(time.Minute)
		last := w.leader() // an unfit one leads on while nobody else is fit
		require.NoError(t, old.Default().SetFit(nil))
		time.Sleep(time.Second)
		require.Equal(t, old, w.leader(), "handed over as soon as there is somebody")
		require.NotEqual(t, old, last)
		w.crash(old.cfg.Node)
		time.Sleep(time.Minute)
		for _, n := range w.nodes {
			require.False(t, n.IsLeader())
			require.Contains(t, n.Status().Groups[0].Explanation, "no database")
		}
		w.closeAll()
		require.ErrorIs(t, next.Default().SetFit(nil), ErrClosed)
	})
}

func TestStepDownRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		w.edit = func(c *Config) { c.Election.NotCandidate = c.Node == "c" }
		w.start("a", "b", "c")
		time.Sleep(election)
		old := w.leader()
		other := w.nodes[map[NodeID]NodeID{"a": "b", "b": "a"}[old.cfg.Node]]
		require.ErrorIs(t, other.Default().StepDown(t.Context(), 0), ErrNotLeader)
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
		w.crash(other.cfg.Node)
		time.Sleep(50 * time.Second)
		require.False(t, old.IsLeader(), "it rests, even if nobody else could lead")
		require.Contains(t, old.Status().Groups[0].Explanation, "stepped down")
		time.Sleep(20 * time.Second)
		require.True(t, old.IsLeader())
		w.closeAll()
	})
}

func TestAPreferredNodeTakesOverOnlyIfThatIsOn(t *testing.T) {
	for _, takeover := range []time.Duration{0, 30 * time.Second} {
		t.Run(takeover.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, "a", "b", "c")
				w.edit = func(c *Config) {
					c.Election.Takeover = takeover
					c.Election.Priority = map[NodeID]int{"a": 9}[c.Node]
				}
				w.start("b", "c")
				time.Sleep(election)
				old := w.leader()
				w.start("a")
				began := time.Now()
				time.Sleep(25 * time.Second)
				require.Equal(t, old, w.leader(), "not before it was healthy for so long")
				time.Sleep(time.Minute)
				preferred := w.leader().cfg.Node == "a"
				require.Equal(t, takeover != 0, preferred, "after %s", time.Since(began))
				w.closeAll()
			})
		})
	}
}
