package main_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/daemon/admin"
	"github.com/bmqelect/bmqelect/internal/daemon/procs"
)

// copyState copies the data directory of a node, which may run.
func (s *scene) copyState(n *procs.Node) string {
	dir := s.t.TempDir()
	require.NoError(s.t, os.CopyFS(dir, os.DirFS(filepath.Join(n.Dir, "state"))))
	return dir
}

// replaceState gives a node that does not run another data directory.
func (s *scene) replaceState(n *procs.Node, from string) {
	state := filepath.Join(n.Dir, "state")
	require.NoError(s.t, os.RemoveAll(state))
	require.NoError(s.t, os.CopyFS(state, os.DirFS(from)))
	require.NoError(s.t, os.Chmod(state, 0o700))
}

func (s *scene) stop(n *procs.Node) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	require.NoError(s.t, n.Stop(ctx))
}

// member is what a node says of another one.
func (s *scene) member(of *procs.Node, id string) (found cluster.MemberStatus) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	st, err := of.Status(ctx)
	require.NoError(s.t, err)
	for _, m := range st.Members {
		if string(m.Node) == id {
			found = m
		}
	}
	return found
}

// answers reports whether a node can be asked.
func (s *scene) answers(n *procs.Node) bool {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, err := n.Status(ctx)
	return err == nil
}

// logged reports whether a node has written a line with all these words.
func (s *scene) logged(n *procs.Node, words ...string) bool {
	text, err := os.ReadFile(filepath.Join(n.Dir, "node.log"))
	require.NoError(s.t, err)
	for line := range strings.Lines(string(text)) {
		all := true
		for _, word := range words {
			all = all && strings.Contains(line, word)
		}
		if all {
			return true
		}
	}
	return false
}

// A process on a copy of the leader's data directory, started beside it, takes no part,
// and both it and the members say why.
func TestACloneOfTheLeaderTakesNoPart(t *testing.T) {
	t.Parallel()
	s, g := elected(t, 3)
	leader := s.node(g.Leader)
	clone := s.stranger("clone", map[string]any{"node": leader.Name, "data-dir": s.copyState(leader)})
	s.eventually("all say so", func() bool {
		said := s.logged(clone, `"error"`, "peer not connected", "data-dir-copied") &&
			s.logged(clone, `"finding"`, "data-dir-copied", "bmqnode forget")
		for _, n := range s.others(g.Leader) {
			said = said && s.logged(n, `"error"`, "connection refused", "data-dir-copied") &&
				s.logged(n, `"finding"`, "data-dir-copied", "bmqnode forget")
		}
		return said
	})
	s.tells([]string{"data-dir-copied"}, "--admin", leader.AdminAddr)
	require.Len(t, s.transitions(becameLeader), 1)
	require.False(t, s.logged(clone, "LEADER"))
	s.agree(s.Nodes(), same(g))
	require.NoError(t, clone.Kill())
	s.agree(s.Nodes(), same(g))
}

// A node whose directory was restored from a copy takes no part until it starts with
// an empty one.
func TestARestoredDirectoryTakesNoPart(t *testing.T) {
	t.Parallel()
	s, g := elected(t, 3)
	n := s.others(g.Leader)[0]
	s.stop(n)
	backup := s.copyState(n)
	require.NoError(t, n.Start())
	s.agree(s.Nodes(), same(g))
	s.stop(n)
	s.replaceState(n, backup)
	require.NoError(t, n.Start())
	s.eventually("it is told", func() bool {
		return s.logged(n, `"error"`, "data-dir-copied") && s.logged(s.node(g.Leader), `"error"`,
			"data-dir-copied")
	})
	s.tells([]string{"data-dir-copied"}, "--admin", s.node(g.Leader).AdminAddr)
	s.agree(s.others(cluster.NodeID(n.Name)), same(g))

	s.stop(n)
	s.replaceState(n, t.TempDir())
	require.NoError(t, n.Start())
	s.agree(s.Nodes(), same(g))
}

// A machine that is lost with its disk, without a sign of its end, is replaced without
// a restart of the others.
func TestALostMachineIsReplacedByForgettingIt(t *testing.T) {
	t.Parallel()
	s := layOut(t, 3, quick())
	s.demandToken()
	require.NoError(t, s.Start())
	g := s.agree(s.Nodes(), nil)
	n := s.others(g.Leader)[0]
	id := cluster.NodeID(n.Name)
	healthy := s.others(id)
	named := healthy[0].AdminAddr + "," + healthy[1].AdminAddr // over loopback no other gets the token
	at := []string{"--admin", named, "--admin-token-file", s.tokenFile}
	_, stderr, code := bmqnode(t, append([]string{"forget", n.Name}, at...)...)
	require.Zero(t, code, stderr)
	require.Contains(t, stderr, "there is nothing to forget: every node that was asked has a link to "+
		"node "+n.Name)

	for _, other := range healthy {
		s.fault(other, admin.FaultRequest{Cut: []cluster.NodeID{id}}) // its end will not be seen
	}
	s.eventually("it is missed", func() bool {
		return s.member(healthy[0], n.Name).Link == "down (timeout)" &&
			s.member(healthy[1], n.Name).Link == "down (timeout)"
	})
	fails(t, 1, "lives, it answers at "+n.AdminAddr, append([]string{"forget", n.Name}, at...)...)

	require.NoError(t, n.Kill())
	s.replaceState(n, t.TempDir())
	require.NoError(t, n.Start())
	s.eventually("its successor runs", func() bool { return s.answers(n) })
	for _, other := range healthy {
		s.fault(other, admin.FaultRequest{HealAll: true})
	}
	s.eventually("its successor is refused", func() bool { return s.logged(n, "duplicate-name") })

	s.eventually("nothing that was promised to it is left", func() bool {
		_, stderr, code := bmqnode(t, append([]string{"forget", n.Name}, at...)...)
		require.True(t, code == 0 || strings.Contains(stderr, "nothing that was promised to it is left"),
			stderr)
		return code == 0
	})
	for _, other := range healthy {
		s.eventually("it is logged", func() bool { return s.logged(other, "member forgotten") })
	}
	s.agree(s.Nodes(), same(g))
}
