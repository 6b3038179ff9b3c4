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
	"github.com/bmqelect/bmqelect/internal/memnet"
	"github.com/bmqelect/bmqelect/lsn"
)

func TestTransfer(t *testing.T) {
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		old := c.elect()
		to, other := c.others(old)[0], c.others(old)[1]
		began := time.Now()
		require.NoError(t, old.Transfer(t.Context(), to))
		require.Less(t, time.Since(began), article.HeartbeatBroadcast, "no timer was waited for")
		leader := c.Node(to)
		require.True(t, leader.IsLeader(), "nil means that the target leads")
		require.False(t, old.IsLeader())
		require.ErrorIs(t, old.Transfer(t.Context(), ""), cluster.ErrNotLeader)

		time.Sleep(time.Second) // the others ack its heartbeats
		c.Isolate(other)
		require.ErrorContains(t, leader.Transfer(t.Context(), other),
			"it does not answer, or cannot lead any more; node "+string(to)+" leads on")
		require.NoError(t, leader.Transfer(t.Context(), old.ID()), "it can still hand over")
		c.Crash(other)
		time.Sleep(election)
		for target, want := range map[cluster.NodeID]string{
			other: "not connected", old.ID(): "leads already", "z": "not one of the voters",
		} {
			require.ErrorContains(t, old.Transfer(t.Context(), target), want)
			require.True(t, old.IsLeader())
		}
	})
}

// A transfer whose node fails before the target leads says why it failed.
func TestATransferLearnsWhyItsNodeFailed(t *testing.T) {
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		leader := c.elect()
		result := make(chan error, 1)
		go func() { result <- leader.Transfer(t.Context(), c.others(leader)[0]) }()
		for leader.IsLeader() {
			time.Sleep(time.Millisecond)
		}
		leader.Fail(errors.New("input/output error"))
		require.ErrorContains(t, <-result, "input/output error")
	}, clustertest.Network(func(net *memnet.Network) {
		net.Delay(func(string, string) time.Duration { return 10 * time.Millisecond },
			func() time.Duration { return 0 })
	}))
}

func TestAClosedNodeAnswers(t *testing.T) {
	withCluster(t, one, func(t *testing.T, c *testCluster) {
		events := c.Node("a").Subscribe(16)
		n := c.elect()
		require.NoError(t, n.Err())
		require.NoError(t, n.ReloadTLS(), "without TLS it does nothing")
		require.NoError(t, n.Close(context.Background()))
		require.NoError(t, n.Close(context.Background()), "twice is harmless")
		c.Closed("a")
		require.ErrorIs(t, n.Err(), cluster.ErrClosed)
		require.False(t, n.IsLeader())
		require.Equal(t, "DORMANT", n.Status().Groups[0].Role)
		stats := n.Stats()
		require.Equal(t, elector.Dormant, stats.Elections[0].Role)
		require.Equal(t, uint64(1), stats.LeaderChanges[elector.Stopped])
		_, err := n.NextLSN()
		require.ErrorIs(t, err, cluster.ErrNotLeader)
		var last cluster.Event
		for last = range events.Events() {
		}
		require.Equal(t, elector.Stopped, last.Reason)
	})
}

func TestNodeThatCannotWriteTakesNoPartAndSaysWhy(t *testing.T) {
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		leader := c.elect()
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

// A node whose directory was deleted would forget its votes with the next crash.
func TestANodeWhoseDirectoryIsDeletedTakesNoPart(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("it does not let go of open files")
	}
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		victim := c.elect()
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

// A term that cannot be right must not spread, and the link to its sender is closed.
func TestAnAbsurdTermClosesTheLink(t *testing.T) {
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		leader := c.elect()
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
