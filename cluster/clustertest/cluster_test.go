package clustertest_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/clustertest"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/netmesh/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var three = []cluster.NodeID{"a", "b", "c"}

// others returns all voters except one.
func others(id cluster.NodeID) (rest []cluster.NodeID) {
	for _, other := range three {
		if other != id {
			rest = append(rest, other)
		}
	}
	return rest
}

// link returns the state of the link of a node to another one.
func link(n *cluster.Node, to cluster.NodeID) string {
	for _, m := range n.Status().Members {
		if m.Node == to {
			return m.Link
		}
	}
	return "unknown"
}

func TestLeaderComesAndStays(t *testing.T) {
	clustertest.Run(t, three, func(t *testing.T, c *clustertest.Cluster) {
		leader := c.AwaitLeader()
		require.True(t, c.Node(leader).IsLeader())
		time.Sleep(10 * time.Minute)
		require.Equal(t, leader, c.Leader())
	})
}

func TestEveryElectionHasALeaderOfItsOwn(t *testing.T) {
	clustertest.Run(t, three, func(t *testing.T, c *clustertest.Cluster) {
		require.Empty(t, c.Leader("jobs"), "nobody has opened it")
		for _, id := range three {
			_, err := c.Node(id).Election("jobs", cluster.ElectionConfig{})
			require.NoError(t, err)
		}
		leader := c.AwaitLeader("jobs")
		for range three {
			old := c.AwaitLeader()
			to := others(old)[0]
			require.NoError(t, c.Node(old).Transfer(t.Context(), to))
			require.Equal(t, to, c.AwaitLeader())
			require.Equal(t, leader, c.AwaitLeader("jobs"))
		}
		require.Contains(t, c.Explain(), "; jobs: LEADER in term 1")
		c.Isolate(leader)
		require.Empty(t, c.Leader("jobs"))
		require.Contains(t, others(leader), c.AwaitLeader("jobs"))
	})
}

func TestCrashIsProvenAndTakesNoTime(t *testing.T) {
	clustertest.Run(t, three, func(t *testing.T, c *clustertest.Cluster) {
		for i := range 10 {
			old := c.AwaitLeader()
			// Pings are sent at whole seconds, so that there may be an unread one now.
			time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second)))
			if i%2 == 1 {
				c.Pause(old) // it leaves unread what comes in
				time.Sleep(elector.Article().Lease / 2)
			}
			began := time.Now()
			c.Crash(old)
			require.Zero(t, time.Since(began))
			require.Empty(t, c.Leader())
			time.Sleep(10 * time.Millisecond)
			for _, id := range others(old) {
				why := c.Node(id).Status().Groups[0].Explanation
				require.NotContains(t, why, "the lease of "+string(old),
					"its death is proven, so its lease is over")
			}
			next := c.AwaitLeader()
			require.NotEqual(t, old, next)
			require.Less(t, time.Since(began), 3*elector.Article().MaxRandomWait)
			c.Restart(old)
			time.Sleep(5 * time.Second)
			require.Equal(t, next, c.Leader(), "who comes back follows")
		}
	})
}

// Guarded work ends with the process, and so does the lock of its data directory.
func TestCrashEndsGuardedWork(t *testing.T) {
	clustertest.Run(t, three, func(t *testing.T, c *clustertest.Cluster) {
		old := c.AwaitLeader()
		_, err := c.Node(old).Default().Campaign(t.Context())
		require.NoError(t, err)
		began := time.Now()
		c.Restart(old)
		require.Zero(t, time.Since(began))
	})
}

func TestStopHandsOver(t *testing.T) {
	clustertest.Run(t, three, func(t *testing.T, c *clustertest.Cluster) {
		old := c.AwaitLeader()
		began := time.Now()
		c.Stop(old)
		require.NotEqual(t, old, c.AwaitLeader())
		require.Less(t, time.Since(began), 50*time.Millisecond, "nobody waited for a timer")
		require.ErrorIs(t, c.Node(old).Err(), cluster.ErrClosed)
		c.Start(old)
		require.NoError(t, c.Node(old).Err())
	})
}

func TestPausedLeaderIsReplacedAndFindsOut(t *testing.T) {
	clustertest.Run(t, three, func(t *testing.T, c *clustertest.Cluster) {
		old := c.AwaitLeader()
		events := c.Node(old).Subscribe(16)
		c.Pause(old)
		require.Empty(t, c.Leader())
		next := c.AwaitLeader()
		require.NotEqual(t, old, next)
		require.False(t, c.Node(old).IsLeader())
		_, err := c.Node(old).NextLSN()
		require.ErrorIs(t, err, cluster.ErrNotLeader)
		time.Sleep(time.Minute)
		require.Empty(t, events.Events(), "it decides nothing")
		require.Contains(t, link(c.Node(next), old), "timeout", "it answers nothing")
		c.Resume(old)
		c.Await("the old leader to follow the new one", func() bool {
			return c.Node(old).Status().Groups[0].Leader == next
		})
		require.Equal(t, elector.LeaseExpired, (<-events.Events()).Reason)
		require.Equal(t, next, c.Leader(), "the new one stays")
	})
}

func TestShortPauseChangesNothing(t *testing.T) {
	clustertest.Run(t, three, func(t *testing.T, c *clustertest.Cluster) {
		leader := c.AwaitLeader()
		term := c.Node(leader).Status().Groups[0].Term
		for range 100 {
			c.Pause(leader)
			time.Sleep(elector.Article().Lease / 4)
			c.Resume(leader)
			time.Sleep(time.Second)
		}
		require.Equal(t, leader, c.Leader())
		require.Equal(t, term, c.Node(leader).Status().Groups[0].Term)
	})
}

func TestPartitionLeavesTheLargerSideALeader(t *testing.T) {
	five := []cluster.NodeID{"a", "b", "c", "d", "e"}
	clustertest.Run(t, five, func(t *testing.T, c *clustertest.Cluster) {
		old := c.AwaitLeader()
		mate := five[0]
		if mate == old {
			mate = five[1]
		}
		c.Partition([]cluster.NodeID{old, mate})
		next := c.AwaitLeader()
		require.NotContains(t, []cluster.NodeID{old, mate}, next)
		require.False(t, c.Node(old).IsLeader())
		c.Heal()
		c.Await("all to follow one", func() bool {
			return c.Node(old).Status().Groups[0].Leader == next &&
				c.Node(mate).Status().Groups[0].Leader == next
		})
	})
}

func TestCutBetweenTwoLeavesTheLeader(t *testing.T) {
	clustertest.Run(t, three, func(t *testing.T, c *clustertest.Cluster) {
		leader := c.AwaitLeader()
		cut := others(leader)[0]
		c.Cut(leader, cut)
		time.Sleep(time.Minute)
		require.Equal(t, leader, c.Leader(), "the other one still follows")
		require.Empty(t, c.Node(cut).Status().Groups[0].Leader)
	})
}

func TestNobodyLeadsWithoutQuorum(t *testing.T) {
	clustertest.Run(t, three, func(t *testing.T, c *clustertest.Cluster) {
		leader := c.AwaitLeader()
		c.Isolate(leader)
		require.Empty(t, c.Leader(), "its lease runs, but it cannot last")
		require.True(t, c.Node(leader).IsLeader())
		c.Crash(others(leader)[0])
		time.Sleep(time.Minute)
		for _, id := range three {
			require.False(t, c.Node(id).IsLeader())
		}
	})
}

func TestDeathBeyondACutIsNotNoticed(t *testing.T) {
	clustertest.Run(t, three, func(t *testing.T, c *clustertest.Cluster) {
		leader := c.AwaitLeader()
		c.Isolate(leader)
		c.Crash(leader)
		time.Sleep(elector.Article().Lease / 2)
		for _, id := range others(leader) {
			require.Equal(t, leader, c.Node(id).Status().Groups[0].Leader, "%s has heard nothing", id)
		}
	})
}

func TestFaultsOfOneDirection(t *testing.T) {
	clustertest.Run(t, three, func(t *testing.T, c *clustertest.Cluster) {
		mute := c.AwaitLeader()
		c.Faults(mute).Cut(elector.AllMembers, fault.Out)
		require.Equal(t, mute, c.Leader(), "nobody has missed it yet")
		c.Await("another leader", func() bool { return c.Leader() != "" && c.Leader() != mute })
		c.Restart(mute)
		require.Equal(t, "*: cut out", c.Faults(mute).String(), "a restart repairs no network")
		c.Heal()
		require.Equal(t, "none", c.Faults(mute).String())
	})
}

func TestStopOfAnIsolatedNodeEnds(t *testing.T) {
	clustertest.Run(t, three, func(t *testing.T, c *clustertest.Cluster) {
		leader := c.AwaitLeader()
		c.Isolate(leader)
		c.Stop(leader)
		require.ErrorIs(t, c.Node(leader).Err(), cluster.ErrClosed)
		c.Heal()
		require.NotEqual(t, leader, c.AwaitLeader())
	})
}

func TestConfigureMakesObserversAndTimers(t *testing.T) {
	edit := func(cfg *cluster.Config) {
		cfg.Voters = []cluster.NodeID{"a", "b"}
		cfg.Election.Timing = elector.BlazingMQ()
		cfg.Election.NotCandidate = cfg.Node == "b"
		cfg.DataDir, cfg.MeshAddr, cfg.AdvertiseMesh = "", "elsewhere:1", "elsewhere:1" // of no effect
	}
	clustertest.Run(t, three, func(t *testing.T, c *clustertest.Cluster) {
		require.Equal(t, cluster.NodeID("a"), c.AwaitLeader())
		c.Await("the observer to follow", func() bool {
			return c.Node("c").Status().Groups[0].Leader == "a"
		})
		c.Crash("b")
		time.Sleep(time.Minute)
		require.Empty(t, c.Leader(), "an observer has no vote")
	}, clustertest.Configure(edit))
}

func TestRestartKeepsTheDisk(t *testing.T) {
	clustertest.Run(t, three, func(t *testing.T, c *clustertest.Cluster) {
		id := others(c.AwaitLeader())[0]
		before := c.Node(id).Status()
		c.Restart(id)
		after := c.Node(id).Status()
		require.Equal(t, before.Identity, after.Identity)
		require.Equal(t, before.Boot+1, after.Boot)
	})
}

func TestExampleHoldsWhatItShows(t *testing.T) { clustertest.Run(t, three, failOver) }
