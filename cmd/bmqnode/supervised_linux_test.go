package main_test

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/internal/daemon/procs"
	"github.com/bmqelect/bmqelect/internal/testkit/nodes"
)

// The parent of a supervised node certifies its death, so that the others need no refused dial. If
// the parent dies, no death is certified: the child hands over and leaves.
func TestASupervisedNodesDeathIsCertified(t *testing.T) {
	t.Parallel()
	options := nodes.Quick()
	options["supervised"] = true
	s := nodes.Play(t, 3, options)
	leader := s.Agree(s.Nodes(), nil)
	old := s.Named(leader.Leader)
	holds(s, old)
	require.NoError(t, syscall.Kill(childOf(t, old), syscall.SIGKILL))
	require.ErrorContains(t, s.Exit(old), "exit status 137")
	s.Agree(s.Others(leader.Leader), nodes.Above(leader.Term))
	for _, n := range s.Others(leader.Leader) {
		s.Eventually(n.Name+" says so", func() bool {
			return s.Said(n.Name, "peer is dead", "peer="+old.Name, "proof=certified") > 0
		})
	}

	require.NoError(t, old.Start())
	leader = s.Agree(s.Nodes(), nodes.Above(leader.Term))
	parent := s.Named(leader.Leader)
	require.NoError(t, parent.Signal(syscall.SIGKILL))
	s.Agree(s.Others(leader.Leader), nodes.Above(leader.Term))
	for _, n := range s.Others(leader.Leader) {
		s.Eventually(n.Name+" says so", func() bool {
			return s.Said(n.Name, "transition", "peer="+parent.Name, "reason=TRANSFERRED") > 0
		})
	}
}

// holds waits until the parent of a node has a share in its connections to all others.
func holds(s *nodes.Scene, n *procs.Node) {
	s.Eventually("the parent of "+n.Name+" holds connections", func() bool {
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
