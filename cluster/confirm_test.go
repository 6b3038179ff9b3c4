package cluster_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
)

// TestALeaderConfirmsThatItLeads: with its followers it can, cut off from them it cannot, although
// its lease is valid for a while, and the error comes when the leadership ends.
func TestALeaderConfirmsThatItLeads(t *testing.T) {
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		l := c.lead()
		id := l.Node().Status().Node
		began := time.Now()
		var calls sync.WaitGroup
		for range 100 { // they share rounds
			calls.Go(func() { require.NoError(t, l.Confirm(t.Context())) })
		}
		calls.Wait()
		require.Less(t, time.Since(began), 100*time.Millisecond, "it waits for no heartbeat")
		for _, n := range c.nodes() {
			if n != c.Node(id) {
				require.ErrorIs(t, n.Default().Confirm(t.Context()), cluster.ErrNotLeader)
			}
		}

		c.Isolate(id)
		require.True(t, l.Valid())
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		require.ErrorIs(t, l.Confirm(ctx), context.DeadlineExceeded)
		cancel()
		require.True(t, l.Valid(), "by its clock it leads on")
		require.ErrorIs(t, l.Confirm(t.Context()), cluster.ErrNotLeader)
		require.ErrorIs(t, l.Confirm(t.Context()), cluster.ErrNotLeader)
		require.False(t, l.Valid())
	})
}

// TestOnlyTheLeadershipThatHoldsIsConfirmed: the node leads on, and another leadership of it began.
func TestOnlyTheLeadershipThatHoldsIsConfirmed(t *testing.T) {
	withCluster(t, one, func(t *testing.T, c *testCluster) {
		l := c.lead()
		require.NoError(t, l.Confirm(t.Context()), "the only voter needs nobody")
		require.NoError(t, c.Node("a").Default().Confirm(t.Context()))
		l.Release()
		require.ErrorIs(t, l.Confirm(t.Context()), cluster.ErrNotLeader)
		require.NoError(t, c.lead().Confirm(t.Context()))
		require.ErrorIs(t, l.Confirm(t.Context()), cluster.ErrNotLeader)
	})
}

// TestVotersThatCrashedProveNothing: they may have voted above the leader's term before. If no
// quorum is left without them, the leader goes on in a term above, and the call is to be repeated.
func TestVotersThatCrashedProveNothing(t *testing.T) {
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		l := c.lead()
		time.Sleep(time.Second) // each has reserved terms on its disk
		for _, id := range c.others(l.Node()) {
			c.Crash(id)
			c.Start(id)
			time.Sleep(20 * time.Second) // it supports the leader again
		}
		term := l.Term()
		require.ErrorIs(t, l.Confirm(t.Context()), cluster.ErrReaffirmed)
		require.Greater(t, l.Term(), term)
		require.NoError(t, l.Confirm(t.Context()))
		require.True(t, l.Valid())
	})
}
