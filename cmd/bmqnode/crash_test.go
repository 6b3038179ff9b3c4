package main_test

import (
	"context"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/admin"
)

func TestKilledLeaderIsReplacedAndComesBackAsAFollower(t *testing.T) {
	t.Parallel()
	s := play(t, 5, quick())
	first := s.agree(s.Nodes(), nil)

	require.NoError(t, s.node(first.Leader).Kill())
	second := s.agree(s.others(first.Leader), above(first.Term))
	require.NotEqual(t, first.Leader, second.Leader)

	require.NoError(t, s.node(first.Leader).Start())
	s.agree(s.Nodes(), same(second))
}

func TestStoppedLeaderHandsOverBeforeItExits(t *testing.T) {
	t.Parallel()
	s := play(t, 3, quick())
	first := s.agree(s.Nodes(), nil)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	require.NoError(t, s.node(first.Leader).Stop(ctx))
	require.NoError(t, s.exit(s.node(first.Leader)), "SIGTERM is a clean exit")
	s.eventually("a follower hears who is to be next", func() bool {
		return len(s.transitions(func(e admin.Event) bool { return e.Reason == "TRANSFERRED" })) > 0
	})
	second := s.agree(s.others(first.Leader), above(first.Term))
	require.NotEqual(t, first.Leader, second.Leader)
}

func TestPausedLeaderNeverClaimsToLeadAfterItWakes(t *testing.T) {
	t.Parallel()
	s := play(t, 3, quick())
	first := s.agree(s.Nodes(), nil)
	old := s.node(first.Leader)

	require.NoError(t, old.Signal(syscall.SIGSTOP))
	second := s.agree(s.others(first.Leader), above(first.Term))

	// The questions wait in the sleeper's sockets: they are the first that it
	// hears when it wakes, before any heartbeat of the new leader.
	const questions = 20
	answers := make(chan cluster.Status, questions)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for range questions {
		go func() {
			c := old.Client()
			defer c.Close()
			st, err := c.Status(ctx)
			if err != nil {
				st = cluster.Status{Failure: err.Error()}
			}
			answers <- st
		}()
	}
	require.NoError(t, old.Signal(syscall.SIGCONT))
	for range questions {
		st := <-answers
		require.Empty(t, st.Failure)
		require.False(t, st.Groups[0].Leading, "it said that it leads: %+v", st.Groups[0])
	}
	s.agree(s.Nodes(), same(second))
}

func TestFollowersRestartInTurnUnderALeaderThatStays(t *testing.T) {
	t.Parallel()
	s := play(t, 5, quick())
	first := s.agree(s.Nodes(), nil)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for i, n := range s.others(first.Leader) {
		if i%2 == 0 {
			require.NoError(t, n.Kill())
		} else {
			require.NoError(t, n.Stop(ctx))
		}
		require.NoError(t, n.Start())
		s.agree(s.Nodes(), same(first))
	}
	require.Empty(t, s.transitions(lostOffice))
}

func TestSingleVoterLeadsAtOnceAndAfterEveryRestart(t *testing.T) {
	t.Parallel()
	s := play(t, 1, nil)
	var last cluster.GroupStatus
	for range 3 {
		g := s.agree(s.Nodes(), above(last.Term))
		last = g
		require.NoError(t, s.Nodes()[0].Kill())
		require.NoError(t, s.Nodes()[0].Start())
	}
}

// A process whose disk fails must stop voting, say why, and exit non-zero. A
// limit of zero on the size of files makes every write of the running process fail.
func TestNodeWhoseDiskFailsStopsTakingPart(t *testing.T) {
	t.Parallel()
	s := play(t, 3, quick())
	first := s.agree(s.Nodes(), nil)
	victim := s.others(first.Leader)[0]
	failWrites(t, victim.Pid())

	// A new term must be written; killing the leader makes one.
	require.NoError(t, s.node(first.Leader).Kill())
	require.Error(t, s.exit(victim), "it exits non-zero")
	s.mu.Lock()
	defer s.mu.Unlock()
	var said bool
	for _, l := range s.lines {
		said = said || l.Node == victim.Name && l.Level == "error" && l.Message == "this node takes no part any more"
	}
	require.True(t, said, "it says why")
}
