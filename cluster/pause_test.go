package cluster_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
)

// pauseOn pauses elections on nodes for an hour.
func pauseOn(t *testing.T, c *testCluster, ids ...cluster.NodeID) {
	t.Helper()
	for _, id := range ids {
		require.NoError(t, c.Node(id).Pause(t.Context(), time.Hour))
	}
}

func TestNobodyStandsUntilElectionsAreResumed(t *testing.T) {
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		old := c.AwaitLeader()
		rest := c.others(c.Node(old))
		pauseOn(t, c, three...)
		c.Crash(old)
		time.Sleep(50 * time.Minute)
		require.Empty(t, c.Leader())
		for _, id := range rest {
			st := c.Node(id).Status()
			require.WithinDuration(t, time.Now().Add(10*time.Minute), st.PausedUntil, time.Second)
			require.Equal(t, fmt.Sprintf("no leader: no eligible candidate is up (%s, %s: elections are "+
				"paused until %s; not connected: %s)", rest[0], rest[1],
				st.PausedUntil.Format(time.RFC3339), old), st.Groups[0].Explanation)
			require.InDelta(t, 600, float64(c.Node(id).Stats().PauseLeft), 1)
		}
		began := time.Now()
		for _, id := range rest {
			require.NoError(t, c.Node(id).Resume(t.Context()))
			require.Zero(t, c.Node(id).Status().PausedUntil)
		}
		c.AwaitLeader()
		t.Logf("a leader %s after the pause was ended", time.Since(began))
		require.Less(t, time.Since(began), 2*article.MaxRandomWait)
	})
}

// TestTheSameLeaderIsBackAfterItsRestart, by SIGKILL and by SIGTERM, and after all nodes
// were restarted. Then leadership is moved, and the other node is restarted.
func TestTheSameLeaderIsBackAfterItsRestart(t *testing.T) {
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		leader := c.AwaitLeader()
		pauseOn(t, c, three...)
		restarted := func(stop func(cluster.NodeID), ids ...cluster.NodeID) {
			t.Helper()
			for _, id := range ids {
				stop(id)
			}
			time.Sleep(time.Minute)
			require.Empty(t, c.Leader())
			for _, id := range ids {
				c.Start(id)
				require.NotZero(t, c.Node(id).Status().PausedUntil)
			}
			require.Equal(t, leader, c.AwaitLeader())
		}
		restarted(c.Crash, leader)
		restarted(c.Stop, leader)
		restarted(c.Crash, three...)
		restarted(c.Stop, three...)

		next := c.others(c.Node(leader))[0]
		require.NoError(t, c.Node(leader).Transfer(t.Context(), next))
		time.Sleep(time.Second) // it is written beside the driver
		old := leader
		leader = next
		restarted(c.Crash, leader)
		restarted(c.Stop, three...)
		require.NotEqual(t, old, leader)
	})
}

func TestAPausedLeaderHandsOverToANamedNodeOnly(t *testing.T) {
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		leader := c.AwaitLeader()
		pauseOn(t, c, three...)
		advice := "paused until " + c.Node(leader).Status().PausedUntil.Format(time.RFC3339) +
			": resume them, or transfer to a named node"
		err := c.Node(leader).Transfer(t.Context(), "")
		require.ErrorIs(t, err, cluster.ErrPaused)
		require.ErrorContains(t, err, advice)
		err = c.Node(leader).Default().StepDown(t.Context(), 0)
		require.ErrorIs(t, err, cluster.ErrPaused)
		require.ErrorContains(t, err, advice)
		require.Equal(t, leader, c.Leader())
		require.Equal(t, "this node leads, backed by 3 of 3 voters (2 needed)",
			c.Node(leader).Status().Groups[0].Explanation)
		require.NoError(t, c.Node(leader).Default().SetFit(fmt.Errorf("ill")))
		time.Sleep(time.Minute)
		require.Equal(t, leader, c.Leader())
		next := c.others(c.Node(leader))[1]
		require.NoError(t, c.Node(leader).Transfer(t.Context(), next))
		require.Equal(t, next, c.AwaitLeader())
		require.ErrorIs(t, c.Node(leader).Transfer(t.Context(), ""), cluster.ErrNotLeader)
		require.NoError(t, c.Node(leader).Default().StepDown(t.Context(), time.Second))
		time.Sleep(time.Hour)
		require.Zero(t, c.Node(next).Status().PausedUntil, "it ends by itself")
		require.Zero(t, c.Node(next).Stats().PauseLeft)
	})
}

func TestElectionsThatAreOpenedLaterArePausedToo(t *testing.T) {
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		open := func(id cluster.NodeID) {
			_, err := c.Node(id).Election("jobs", cluster.ElectionConfig{})
			require.NoError(t, err)
		}
		for _, id := range three {
			open(id)
		}
		leader := c.AwaitLeader("jobs")
		c.AwaitLeader()
		pauseOn(t, c, three...)
		for _, id := range three {
			c.Restart(id)
			time.Sleep(20 * time.Second) // events of the default election pass meanwhile
			open(id)
		}
		require.Equal(t, leader, c.AwaitLeader("jobs"))
	})
}

func TestPausesThatCannotBe(t *testing.T) {
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		n := c.Node("a")
		for _, d := range []time.Duration{0, -1, 24*time.Hour + 1} {
			require.ErrorContains(t, n.Pause(t.Context(), d), "it must be positive and at most 24h0m0s")
		}
		require.NoError(t, n.Resume(t.Context()))
		ended, end := context.WithCancel(t.Context())
		end()
		require.ErrorIs(t, n.Pause(ended, time.Hour), context.Canceled)
		require.Zero(t, n.Status().PausedUntil)
		c.Stop("a")
		require.ErrorIs(t, n.Pause(t.Context(), time.Hour), cluster.ErrClosed)
		require.ErrorIs(t, n.Resume(t.Context()), cluster.ErrClosed)
	})
}
