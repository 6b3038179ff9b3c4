package main_test

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/internal/daemon/procs"
)

// TestASupervisedNodesDeathIsCertified by its parent, so that nobody needs a refused dial. If
// the parent dies nobody is told, and the child hands over and leaves.
func TestASupervisedNodesDeathIsCertified(t *testing.T) {
	t.Parallel()
	options := quick()
	options["supervised"] = true
	s := play(t, 3, options)
	leader := s.agree(s.Nodes(), nil)
	old := s.node(leader.Leader)
	s.holds(old)
	require.NoError(t, syscall.Kill(childOf(t, old), syscall.SIGKILL))
	require.ErrorContains(t, s.exit(old), "exit status 137")
	s.agree(s.others(leader.Leader), above(leader.Term))
	for _, n := range s.others(leader.Leader) {
		s.says(n, "peer is dead", "peer="+old.Name, "proof=certified")
	}

	require.NoError(t, old.Start())
	leader = s.agree(s.Nodes(), above(leader.Term))
	parent := s.node(leader.Leader)
	require.NoError(t, parent.Signal(syscall.SIGKILL))
	s.agree(s.others(leader.Leader), above(leader.Term))
	for _, n := range s.others(leader.Leader) {
		s.says(n, "transition", "peer="+parent.Name, "reason=TRANSFERRED")
	}
}

// holds waits until the parent of a node has a share in its connections to all others.
func (s *scene) holds(n *procs.Node) {
	s.eventually("the parent of "+n.Name+" holds connections", func() bool {
		files, sockets := fmt.Sprintf("/proc/%d/fd", n.Pid()), 0
		list, err := os.ReadDir(files)
		for _, f := range list {
			if to, _ := os.Readlink(files + "/" + f.Name()); strings.HasPrefix(to, "socket:") {
				sockets++
			}
		}
		return err == nil && sockets > len(s.Nodes())-1 // one leads to the child
	})
}

// says waits for a line of a node's log that has all that.
func (s *scene) says(n *procs.Node, message string, details ...string) {
	s.eventually(fmt.Sprint(n.Name, " says ", message, details), func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, l := range s.lines {
			found := l.Node == n.Name && l.Message == message
			for _, d := range details {
				found = found && strings.Contains(l.Detail, d)
			}
			if found {
				return true
			}
		}
		return false
	})
}
