package main_test

import (
	"context"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/daemon/admin"
	"github.com/bmqelect/bmqelect/internal/testkit/nodes"
)

func TestPausedLeaderNeverClaimsToLeadAfterItWakes(t *testing.T) {
	t.Parallel()
	s, first := nodes.Elected(t, 3)
	old := s.Named(first.Leader)

	require.NoError(t, old.Signal(syscall.SIGSTOP))
	second := s.Agree(s.Others(first.Leader), nodes.Above(first.Term))

	// The questions wait in the sleeper's sockets: they are the first that it
	// hears when it wakes, before any heartbeat of the new leader.
	const questions = 20
	answers := make(chan cluster.Status, questions)
	ctx, cancel := context.WithTimeout(context.Background(), nodes.Patience)
	defer cancel()
	for range questions {
		go func() {
			st, err := old.Client().Status(ctx)
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
	s.Agree(s.Nodes(), nodes.Same(second))
}

// A process whose disk fails must stop voting, say why, and exit non-zero. A
// limit of zero on the size of files makes every write of the running process fail.
func TestNodeWhoseDiskFailsStopsTakingPart(t *testing.T) {
	t.Parallel()
	s, first := nodes.Elected(t, 3)
	victim := s.Others(first.Leader)[0]
	if err := unix.Prlimit(victim.Pid(), unix.RLIMIT_FSIZE, &unix.Rlimit{}, nil); err != nil {
		t.Skipf("needs the right to limit another process: %v", err)
	}

	// A vote needs no write as long as terms are reserved; a pause needs one.
	_, err := victim.Client().Tell(t.Context(), admin.PauseRequest{For: "1m"})
	require.Error(t, err)
	require.Error(t, s.Exit(victim), "it exits non-zero")
	require.Equal(t, 1, s.Said(victim.Name, "this node takes no part any more"), "it says why")
}
