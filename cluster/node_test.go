package cluster

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/lsn"
	"github.com/bmqelect/bmqelect/netmesh/fault"
)

func TestThreeNodesElectOneLeaderAndKeepIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		w.start("a", "b", "c")
		time.Sleep(election)
		leader := w.leader()
		term := leader.Status().Groups[0].Term
		time.Sleep(10 * time.Minute)
		require.Same(t, leader, w.leader())
		require.Equal(t, term, leader.Status().Groups[0].Term)
		w.closeAll()
	})
}

func TestCrashedLeaderIsReplacedWithinItsBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		w.start("a", "b", "c")
		time.Sleep(election)
		old := w.leader()
		w.crash(old.cfg.Node)
		time.Sleep(10 * time.Millisecond)
		for _, n := range w.nodes {
			require.NotEqual(t, old.cfg.Node, n.machine().PromisedTo, "the proof of death releases the promise")
		}
		// Proof of death and an election take no virtual time; only the back-off does.
		time.Sleep(elector.Article().MaxRandomWait + time.Second)
		w.leader()
		w.start(old.cfg.Node)
		time.Sleep(election)
		require.NotEqual(t, old.cfg.Node, w.leader().cfg.Node, "who comes back follows")
		w.closeAll()
	})
}

func TestIsolatedLeaderStopsLeadingBeforeTheNextOneStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		w.start("a", "b", "c")
		time.Sleep(election)
		old := w.leader()
		w.isolate(old.cfg.Node)
		for range 1000 {
			time.Sleep(10 * time.Millisecond)
			leaders := 0
			for _, n := range w.nodes {
				if n.IsLeader() {
					leaders++
				}
			}
			require.LessOrEqual(t, leaders, 1)
		}
		require.False(t, old.IsLeader())
		w.faults[old.cfg.Node].HealAll()
		time.Sleep(election)
		require.NotEqual(t, old, w.leader(), "a leader that comes back follows")
		w.closeAll()
	})
}

func TestTransferMakesTheTargetLead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		w.start("a", "b", "c")
		time.Sleep(election)
		old := w.leader()
		to := w.others(old)[0]
		began := time.Now()
		require.NoError(t, old.Transfer(t.Context(), to))
		require.Less(t, time.Since(began), elector.Article().HeartbeatBroadcast, "no timer was waited for")
		require.True(t, w.nodes[to].IsLeader(), "nil means that the target leads")
		require.False(t, old.IsLeader())
		w.closeAll()
	})
}

func TestTransferThatCannotBeLeavesTheLeaderInPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		w.start("a", "b", "c")
		time.Sleep(election)
		leader := w.leader()
		down := w.others(leader)[0]
		w.crash(down)
		time.Sleep(election)
		for to, want := range map[NodeID]string{
			down: "not connected", leader.cfg.Node: "leads already", "z": "not one of the voters",
		} {
			require.ErrorContains(t, leader.Transfer(t.Context(), to), want)
			require.True(t, leader.IsLeader())
		}
		follower := w.nodes[w.others(leader)[1]]
		require.ErrorIs(t, follower.Transfer(t.Context(), ""), ErrNotLeader)
		w.closeAll()
	})
}

// TestTransferToANodeThatCannotWinLeavesTheLeaderInPlace: of the others it has links
// to none but the leader.
func TestTransferToANodeThatCannotWinLeavesTheLeaderInPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c", "d", "e")
		w.start("a", "b", "c", "d", "e")
		time.Sleep(election)
		leader := w.leader()
		spoke := w.others(leader)[0]
		for _, id := range w.others(leader)[1:] {
			w.faults[spoke].Cut(id, fault.Both)
		}
		time.Sleep(election)
		require.ErrorContains(t, leader.Transfer(t.Context(), spoke), "it is connected to too few voters to win an election")
		time.Sleep(election)
		require.Equal(t, leader, w.leader())
		w.closeAll()
	})
}

func TestTransferToANodeThatDoesNotAnswerLeavesTheLeaderInPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		w.start("a", "b", "c")
		time.Sleep(election)
		leader := w.leader()
		mute := w.others(leader)[0]
		w.isolate(mute)
		term := leader.Status().Groups[0].Term
		err := leader.Transfer(t.Context(), mute)
		require.ErrorContains(t, err, "node "+string(leader.cfg.Node)+" leads on")
		require.True(t, leader.IsLeader())
		require.Equal(t, term, leader.Status().Groups[0].Term)
		require.NoError(t, leader.Transfer(t.Context(), w.others(leader)[1]), "it can still hand over to somebody else")
		w.closeAll()
	})
}

func TestCloseHandsOverToTheBestFollower(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		w.edit = func(c *Config) { c.Election.Priority = map[NodeID]int{"a": 3, "b": 2, "c": 1}[c.Node] }
		w.start("a", "b", "c")
		time.Sleep(election)
		old := w.leader()
		best := NodeID("a")
		if old.cfg.Node == "a" {
			best = "b"
		}
		w.close(old.cfg.Node)
		time.Sleep(elector.Article().HeartbeatBroadcast)
		require.Equal(t, best, w.leader().cfg.Node)
		w.closeAll()
	})
}

func TestFencingTokensRiseAndEndWithLeadership(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		w.start("a", "b", "c")
		time.Sleep(election)
		old := w.leader()
		first, err := old.NextLSN()
		require.NoError(t, err)
		second, err := old.NextLSN()
		require.NoError(t, err)
		require.Equal(t, lsn.LSN{Term: first.Term, Counter: first.Counter + 1}, second)
		time.Sleep(time.Second)
		for _, id := range w.others(old) {
			require.Equal(t, second, w.nodes[id].Status().Groups[0].LSN, "heartbeats carry the newest")
			_, err := w.nodes[id].NextLSN()
			require.ErrorIs(t, err, ErrNotLeader)
		}
		w.isolate(old.cfg.Node)
		time.Sleep(elector.Article().Lease)
		_, err = old.NextLSN()
		require.ErrorIs(t, err, ErrNotLeader, "the lease is over")
		time.Sleep(election)
		for _, id := range w.others(old) {
			if n := w.nodes[id]; n.IsLeader() {
				third, err := n.NextLSN()
				require.NoError(t, err)
				require.Positive(t, third.Compare(second))
			}
		}
		w.closeAll()
	})
}

func TestObserverFollowsAndNeverVotes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b")
		w.start("a", "b")
		w.start("watcher")
		for _, id := range w.voters {
			w.nodes[id].mesh.AddPeer("watcher", "watcher:7401")
		}
		time.Sleep(election)
		leader := w.leader()
		require.Equal(t, leader.cfg.Node, w.nodes["watcher"].Status().Groups[0].Leader)
		w.crash(w.others(leader)[0])
		time.Sleep(time.Minute)
		require.False(t, leader.IsLeader(), "an observer is no quorum")
		require.Contains(t, leader.Status().Groups[0].Explanation, "no leader: 2 of 2 voters needed, 1 reachable")
		w.closeAll()
	})
}

func TestSubscriberIsToldEveryTransitionInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a")
		w.start("a")
		sub := w.nodes["a"].Subscribe(16)
		time.Sleep(time.Second)
		w.closeAll()
		var last Event
		for e := range sub.Events() {
			require.True(t, e.Legal())
			last = e
		}
		require.Equal(t, elector.Stopped, last.Reason)
	})
}

// failWrites makes a node's writes fail from now on, as a full disk does.
func failWrites(n *Node, err error) {
	n.persister.mu.Lock()
	defer n.persister.mu.Unlock()
	n.persister.write = func(map[string]lsn.Term) error { return err }
}

func TestNodeThatCannotWriteTakesNoPartAndSaysWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		w.start("a", "b", "c")
		time.Sleep(election)
		leader := w.leader()
		victim := w.nodes[w.others(leader)[0]]
		full := errors.New("no space left")
		failWrites(victim, full)
		w.crash(leader.cfg.Node) // the next election raises the term
		time.Sleep(time.Minute)
		<-victim.Done()
		require.ErrorIs(t, victim.Err(), full)
		require.ErrorContains(t, victim.Err(), "node "+string(victim.cfg.Node)+" takes no part")
		require.Equal(t, "DORMANT", victim.Status().Groups[0].Role)
		require.Contains(t, victim.Status().Failure, "no space left")
		require.ErrorIs(t, victim.Transfer(t.Context(), ""), full, "the cause, not that it is closed")
		for _, n := range w.nodes {
			require.False(t, n.IsLeader(), "one of three voters is no quorum")
		}
		w.closeAll()
	})
}

func TestClosedNodeAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a")
		w.start("a")
		time.Sleep(time.Second)
		n := w.nodes["a"]
		require.True(t, n.IsLeader())
		require.NoError(t, n.Err())
		require.NoError(t, n.Close(context.Background()))
		require.NoError(t, n.Close(context.Background()), "twice is harmless")
		require.ErrorIs(t, n.Err(), ErrClosed)
		require.False(t, n.IsLeader())
		require.Equal(t, "DORMANT", n.Status().Groups[0].Role)
		_, err := n.NextLSN()
		require.ErrorIs(t, err, ErrNotLeader)
	})
}

func TestSingleVoterLeadsAtOnceAfterEveryRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a")
		var last lsn.Term
		for range 5 {
			w.start("a")
			synctest.Wait()
			time.Sleep(time.Millisecond)
			g := w.nodes["a"].Status().Groups[0]
			require.True(t, g.Leading)
			require.Greater(t, g.Term, last)
			last = g.Term
			w.crash("a")
		}
	})
}

func TestStartNamesWhatIsWrong(t *testing.T) {
	_, err := Start(t.Context(), Config{Node: "a"})
	require.ErrorContains(t, err, "Voters is empty")
	require.ErrorContains(t, err, "DataDir is empty")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = Start(ctx, Config{Node: "a", Voters: []NodeID{"a"}, DataDir: t.TempDir()})
	require.ErrorIs(t, err, context.Canceled)
}

func TestFailedStartLeavesNothingBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a")
		l, err := w.net.Host("a").Listen("a:7401")
		require.NoError(t, err)
		cfg := Config{Node: "a", Voters: w.voters, DataDir: w.dir, MeshAddr: "a:7401"}
		_, err = Start(w.context("a"), cfg)
		require.ErrorContains(t, err, "a:7401", "the address is taken")
		require.NoError(t, l.Close())
		n, err := Start(w.context("a"), cfg)
		require.NoError(t, err, "the directory is free again")
		require.NoError(t, n.Close(context.Background()))
	})
}

func TestRestartedVoterSupportsNobodyForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		w.start("a", "b", "c")
		time.Sleep(election)
		id := w.others(w.leader())[0]
		w.crash(id)
		for other := range w.nodes {
			w.faults[other].Cut(id, fault.Both)
		}
		w.start(id)
		synctest.Wait()
		g := w.nodes[id].Status().Groups[0]
		require.Empty(t, g.Leader)
		require.NotZero(t, g.Term, "the term was on disk")
		require.Positive(t, w.nodes[id].machine().EmbargoEnd, "it may have promised its vote before the crash")
		w.closeAll()
	})
}

// The driver may be held up, by a loaded machine or a debugger. Those who ask do
// not depend on it.
func TestLeaderWhoseDriverIsHeldUpDoesNotClaimToLead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		w.start("a", "b", "c")
		time.Sleep(election)
		leader := w.leader()
		go leader.call(func() { time.Sleep(time.Minute) })
		time.Sleep(elector.Article().Lease / 4)
		require.True(t, leader.IsLeader(), "its lease has not run out yet")
		time.Sleep(elector.Article().Lease)
		require.False(t, leader.IsLeader())
		_, err := leader.NextLSN()
		require.ErrorIs(t, err, ErrNotLeader)
		time.Sleep(2 * time.Minute)
		w.leader()
		w.closeAll()
	})
}

// A term that cannot be right must not become everyone's, and who sends one is
// not listened to.
func TestAnAbsurdTermClosesTheLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		w.start("a", "b", "c")
		time.Sleep(election)
		leader := w.leader()
		liar := w.nodes[w.others(leader)[0]]
		liar.call(func() {
			liar.mesh.Send(leader.cfg.Node, DefaultGroup, elector.Message{Kind: elector.LeaderHeartbeat, Term: lsn.MaxTerm + 1, Sequence: 1})
		})
		synctest.Wait()
		st := leader.Status()
		require.Equal(t, 1, st.Anomalies["absurd-term"])
		for _, m := range st.Members {
			broken := m.Link != "up" || m.LinkFor.Duration() < election/2
			require.Equal(t, m.Node == liar.cfg.Node, broken, "the liar's link was closed, and no other")
		}
		require.True(t, leader.IsLeader())
		time.Sleep(election)
		require.Less(t, leader.Status().Groups[0].Term, lsn.Term(10))
		w.closeAll()
	})
}
