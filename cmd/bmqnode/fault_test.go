package main_test

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
)

func TestLinksAreCutAndHealedByCommand(t *testing.T) {
	t.Parallel()
	s, first := elected(t, 3)
	followers := s.others(first.Leader)
	ask := func(code int, want string, args ...string) {
		t.Helper()
		stdout, stderr, got := bmqnode(t, append(args, "--admin", s.node(first.Leader).AdminAddr)...)
		require.Equal(t, code, got, stdout+stderr)
		require.Contains(t, stdout+stderr, want)
	}
	linked := func(a, b cluster.NodeID) bool {
		st, err := s.node(a).Status(t.Context())
		require.NoError(t, err)
		for _, m := range st.Members {
			if m.Node == b {
				return m.Link == "up"
			}
		}
		return false
	}
	lonely, other := followers[0].Name, cluster.NodeID(followers[1].Name)

	ask(0, lonely+" and "+string(other)+" do not hear each other", "fault", "cut", lonely,
		string(other))
	ask(0, lonely+": cut on purpose: "+string(other)+": cut both", "status")
	s.eventually("the link goes down", func() bool { return !linked(other, cluster.NodeID(lonely)) })
	ask(0, "every link is healed", "fault", "heal")
	s.eventually("it comes up", func() bool { return linked(other, cluster.NodeID(lonely)) })

	ask(0, lonely+" hears nobody", "fault", "isolate", lonely)
	s.eventually("it loses its leader", func() bool { return s.lostLeader(followers[0]) })
	require.NoError(t, followers[0].Signal(syscall.SIGSTOP))
	ask(1, lonely+" does not answer: what is cut there stays cut", "fault", "heal")
	require.NoError(t, followers[0].Signal(syscall.SIGCONT))
	ask(0, "every link is healed", "fault", "heal")
	s.agree(s.Nodes(), same(first))

	ask(2, "no link to itself", "fault", "cut", "n1", "n1")
	ask(2, `there is no node "n9"`, "fault", "isolate", "n9")
}
