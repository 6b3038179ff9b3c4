package cluster_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/clustertest"
)

// TestCandidacyChangesAtRunTime: the leader hands over, and another one that was not a
// candidate is one from now on, at which a Run that waits for that leads.
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

// TestPriorityChangesAtRunTime: the leader learns of another one's by its acks, and acts on
// its own.
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
