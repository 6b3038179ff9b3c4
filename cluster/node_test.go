package cluster_test

import (
	"context"
	"errors"
	"os"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/clustertest"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/lsn"
	"github.com/bmqelect/bmqelect/netmesh/fault"
)

func TestThreeNodesElectOneLeaderAndKeepIt(t *testing.T) {
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		time.Sleep(election)
		leader := c.leader()
		term := leader.Status().Groups[0].Term
		time.Sleep(10 * time.Minute)
		require.Same(t, leader, c.leader())
		require.Equal(t, term, leader.Status().Groups[0].Term)
	})
}

func TestCrashedLeaderIsReplacedWithinItsBackOff(t *testing.T) {
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		time.Sleep(election)
		old := c.leader()
		c.Crash(old.ID())
		time.Sleep(10 * time.Millisecond)
		for _, n := range c.nodes() {
			require.NotEqual(t, old.ID(), n.Machine().PromisedTo, "the proof of death releases the promise")
		}
		// Proof of death and an election take no virtual time; only the back-off does.
		time.Sleep(elector.Article().MaxRandomWait + time.Second)
		c.leader()
		c.Start(old.ID())
		time.Sleep(election)
		require.NotEqual(t, old.ID(), c.leader().ID(), "who comes back follows")
	})
}

func TestIsolatedLeaderStopsLeadingBeforeTheNextOneStarts(t *testing.T) {
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		time.Sleep(election)
		old := c.leader()
		c.Isolate(old.ID())
		for range 1000 {
			time.Sleep(10 * time.Millisecond)
			leaders := 0
			for _, n := range c.nodes() {
				if n.IsLeader() {
					leaders++
				}
			}
			require.LessOrEqual(t, leaders, 1)
		}
		require.False(t, old.IsLeader())
		c.Heal()
		time.Sleep(election)
		require.NotEqual(t, old, c.leader(), "a leader that comes back follows")
	})
}

func TestTransferMakesTheTargetLead(t *testing.T) {
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		time.Sleep(election)
		old := c.leader()
		to := c.others(old)[0]
		began := time.Now()
		require.NoError(t, old.Transfer(t.Context(), to))
		require.Less(t, time.Since(began), elector.Article().HeartbeatBroadcast,
			"no timer was waited for")
		require.True(t, c.Node(to).IsLeader(), "nil means that the target leads")
		require.False(t, old.IsLeader())
	})
}

func TestTransferThatCannotBeLeavesTheLeaderInPlace(t *testing.T) {
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		time.Sleep(election)
		leader := c.leader()
		down := c.others(leader)[0]
		c.Crash(down)
		time.Sleep(election)
		for to, want := range map[cluster.NodeID]string{
			down: "not connected", leader.ID(): "leads already", "z": "not one of the voters",
		} {
			require.ErrorContains(t, leader.Transfer(t.Context(), to), want)
			require.True(t, leader.IsLeader())
		}
		follower := c.Node(c.others(leader)[1])
		require.ErrorIs(t, follower.Transfer(t.Context(), ""), cluster.ErrNotLeader)
	})
}

// TestTransferToANodeThatCannotWinLeavesTheLeaderInPlace: of the others it has links
// to none except the leader.
func TestTransferToANodeThatCannotWinLeavesTheLeaderInPlace(t *testing.T) {
	withCluster(t, []cluster.NodeID{"a", "b", "c", "d", "e"}, func(t *testing.T, c *testCluster) {
		time.Sleep(election)
		leader := c.leader()
		spoke := c.others(leader)[0]
		for _, id := range c.others(leader)[1:] {
			c.Faults(spoke).Cut(id, fault.Both)
		}
		time.Sleep(election)
		require.ErrorContains(t, leader.Transfer(t.Context(), spoke),
			"it is connected to too few voters to win an election")
		time.Sleep(election)
		require.Equal(t, leader, c.leader())
	})
}

func TestTransferToANodeThatDoesNotAnswerLeavesTheLeaderInPlace(t *testing.T) {
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		time.Sleep(election)
		leader := c.leader()
		mute := c.others(leader)[0]
		c.Isolate(mute)
		term := leader.Status().Groups[0].Term
		err := leader.Transfer(t.Context(), mute)
		require.ErrorContains(t, err, "node "+string(leader.ID())+" leads on")
		require.True(t, leader.IsLeader())
		require.Equal(t, term, leader.Status().Groups[0].Term)
		require.NoError(t, leader.Transfer(t.Context(), c.others(leader)[1]),
			"it can still hand over to somebody else")
	})
}

func TestCloseHandsOverToTheBestFollower(t *testing.T) {
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		time.Sleep(election)
		old := c.leader()
		best := cluster.NodeID("a")
		if old.ID() == "a" {
			best = "b"
		}
		c.Stop(old.ID())
		time.Sleep(elector.Article().HeartbeatBroadcast)
		require.Equal(t, best, c.leader().ID())
	}, clustertest.Configure(func(cfg *cluster.Config) {
		cfg.Election.Priority = map[cluster.NodeID]int{"a": 3, "b": 2, "c": 1}[cfg.Node]
	}))
}

func TestFencingTokensRiseAndEndWithLeadership(t *testing.T) {
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		time.Sleep(election)
		old := c.leader()
		first, err := old.NextLSN()
		require.NoError(t, err)
		second, err := old.NextLSN()
		require.NoError(t, err)
		require.Equal(t, lsn.LSN{Term: first.Term, Counter: first.Counter + 1}, second)
		time.Sleep(time.Second)
		for _, id := range c.others(old) {
			require.Equal(t, second, c.Node(id).Status().Groups[0].LSN, "heartbeats carry the newest")
			_, err := c.Node(id).NextLSN()
			require.ErrorIs(t, err, cluster.ErrNotLeader)
		}
		c.Isolate(old.ID())
		time.Sleep(elector.Article().Lease)
		_, err = old.NextLSN()
		require.ErrorIs(t, err, cluster.ErrNotLeader, "the lease is over")
		time.Sleep(election)
		for _, id := range c.others(old) {
			if n := c.Node(id); n.IsLeader() {
				third, err := n.NextLSN()
				require.NoError(t, err)
				require.Positive(t, third.Compare(second))
			}
		}
	})
}

func TestObserverFollowsAndNeverVotes(t *testing.T) {
	voters := []cluster.NodeID{"a", "b"}
	nodes := []cluster.NodeID{"a", "b", "watcher"}
	withCluster(t, nodes, func(t *testing.T, c *testCluster) {
		time.Sleep(election)
		leader := c.leader()
		require.Equal(t, leader.ID(), c.Node("watcher").Status().Groups[0].Leader)
		c.Crash(c.others(leader)[0])
		time.Sleep(time.Minute)
		require.False(t, leader.IsLeader(), "an observer is no quorum")
		require.Contains(t, leader.Status().Groups[0].Explanation,
			"no leader: 2 of 2 voters needed, 1 reachable")
	}, clustertest.Configure(func(cfg *cluster.Config) { cfg.Voters = voters }))
}

func TestSubscriberIsToldEveryTransitionInOrder(t *testing.T) {
	withCluster(t, one, func(t *testing.T, c *testCluster) {
		sub := c.Node("a").Subscribe(16)
		time.Sleep(time.Second)
		c.stopAll()
		var last cluster.Event
		for e := range sub.Events() {
			require.True(t, e.Legal())
			last = e
		}
		require.Equal(t, elector.Stopped, last.Reason)
	})
}

func TestNodeThatCannotWriteTakesNoPartAndSaysWhy(t *testing.T) {
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		time.Sleep(election)
		leader := c.leader()
		victim := c.Node(c.others(leader)[0])
		full := errors.New("no space left")
		c.onWrite.Store(victim.ID(), func(func() error) error { return full })
		victim.Default().Hear(leader.ID(), elector.Message{ // above all that is reserved
			Kind: elector.LeaderHeartbeat, Term: 1000, Sequence: 1, SentAt: 1,
		}, nil)
		c.Crash(leader.ID())
		time.Sleep(time.Minute)
		<-victim.Done()
		require.ErrorIs(t, victim.Err(), full)
		require.ErrorContains(t, victim.Err(), "node "+string(victim.ID())+" takes no part")
		require.Equal(t, "DORMANT", victim.Status().Groups[0].Role)
		require.Contains(t, victim.Status().Failure, "no space left")
		require.ErrorIs(t, victim.Transfer(t.Context(), ""), full, "the cause, not that it is closed")
		for _, n := range c.nodes() {
			require.False(t, n.IsLeader(), "one of three voters is no quorum")
		}
	})
}

// Whoever leads after its directory was deleted would start blank after the next crash.
func TestANodeWhoseDirectoryIsDeletedTakesNoPart(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("it does not let go of open files")
	}
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		time.Sleep(election)
		victim := c.leader()
		require.NoError(t, os.RemoveAll(c.DataDir(victim.ID())))
		time.Sleep(2 * time.Second) // nothing is written meanwhile: it looks every second
		require.ErrorIs(t, victim.Err(), cluster.ErrNotDurable)
		require.Contains(t, victim.Status().Failure, "state.db: the file was deleted or moved")
		require.False(t, victim.IsLeader())
		time.Sleep(election)
		for _, id := range c.others(victim) {
			leader := c.Node(id).Status().Groups[0].Leader
			require.Contains(t, c.others(victim), leader, "the others go on")
		}
	})
}

func TestClosedNodeAnswers(t *testing.T) {
	withCluster(t, one, func(t *testing.T, c *testCluster) {
		time.Sleep(time.Second)
		n := c.Node("a")
		require.True(t, n.IsLeader())
		require.NoError(t, n.Err())
		require.NoError(t, n.Close(context.Background()))
		require.NoError(t, n.Close(context.Background()), "twice is harmless")
		require.ErrorIs(t, n.Err(), cluster.ErrClosed)
		require.False(t, n.IsLeader())
		require.Equal(t, "DORMANT", n.Status().Groups[0].Role)
		_, err := n.NextLSN()
		require.ErrorIs(t, err, cluster.ErrNotLeader)
	})
}

func TestSingleVoterLeadsAtOnceAfterEveryRestart(t *testing.T) {
	withCluster(t, one, func(t *testing.T, c *testCluster) {
		var last lsn.Term
		for range 5 {
			c.Start("a")
			synctest.Wait()
			time.Sleep(time.Millisecond)
			g := c.Node("a").Status().Groups[0]
			require.True(t, g.Leading)
			require.Greater(t, g.Term, last)
			last = g.Term
			c.Crash("a")
		}
	}, clustertest.Down("a"))
}

func TestStartNamesWhatIsWrong(t *testing.T) {
	_, err := cluster.Start(t.Context(), cluster.Config{Node: "a"})
	require.ErrorContains(t, err, "Voters is empty")
	require.ErrorContains(t, err, "DataDir is empty")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = cluster.Start(ctx, cluster.Config{Node: "a", Voters: []cluster.NodeID{"a"},
		DataDir: t.TempDir()})
	require.ErrorIs(t, err, context.Canceled)
}

func TestFailedStartLeavesNothingBehind(t *testing.T) {
	withCluster(t, one, func(t *testing.T, c *testCluster) {
		l, err := c.net.Host("a").Listen("a:7401")
		require.NoError(t, err)
		_, err = cluster.Start(c.context("a"), c.config("a"))
		require.ErrorContains(t, err, "a:7401", "the address is taken")
		require.NoError(t, l.Close())
		c.Start("a") // the directory is free again
	}, clustertest.Down("a"))
}

func TestRestartedVoterSupportsNobodyForAWhile(t *testing.T) {
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		time.Sleep(election)
		id := c.others(c.leader())[0]
		c.Crash(id)
		for other := range c.nodes() {
			c.Faults(other).Cut(id, fault.Both)
		}
		c.Start(id)
		synctest.Wait()
		g := c.Node(id).Status().Groups[0]
		require.Empty(t, g.Leader)
		require.NotZero(t, g.Term, "the term was on disk")
		require.Positive(t, c.Node(id).Machine().EmbargoEnd,
			"it may have promised its vote before the crash")
	})
}

// The driver may be held up, by a loaded machine or a debugger. Those who ask do
// not depend on it.
func TestLeaderWhoseDriverIsHeldUpDoesNotClaimToLead(t *testing.T) {
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		time.Sleep(election)
		leader := c.leader()
		go leader.Do(func() { time.Sleep(time.Minute) })
		time.Sleep(elector.Article().Lease / 4)
		require.True(t, leader.IsLeader(), "its lease has not run out yet")
		time.Sleep(elector.Article().Lease)
		require.False(t, leader.IsLeader())
		_, err := leader.NextLSN()
		require.ErrorIs(t, err, cluster.ErrNotLeader)
		time.Sleep(2 * time.Minute)
		c.leader()
	})
}

// A term that cannot be right must not become everyone's, and who sends one is
// not listened to.
func TestAnAbsurdTermClosesTheLink(t *testing.T) {
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		time.Sleep(election)
		leader := c.leader()
		liar := c.Node(c.others(leader)[0])
		liar.Do(func() {
			liar.Mesh().Send(leader.ID(), cluster.DefaultGroup,
				elector.Message{Kind: elector.LeaderHeartbeat, Term: lsn.MaxTerm + 1, Sequence: 1})
		})
		synctest.Wait()
		st := leader.Status()
		require.Equal(t, 1, st.Anomalies["absurd-term"])
		for _, m := range st.Members {
			broken := m.Link != "up" || m.LinkFor.Duration() < election/2
			require.Equal(t, m.Node == liar.ID(), broken, "the liar's link was closed, and no other")
		}
		require.True(t, leader.IsLeader())
		time.Sleep(election)
		require.Less(t, leader.Status().Groups[0].Term, lsn.Term(10))
	})
}
