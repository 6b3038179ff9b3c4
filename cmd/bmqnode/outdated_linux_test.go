package main_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/daemon/admin"
	"github.com/bmqelect/bmqelect/internal/daemon/procs"
)

// A disk is lost and replaced, and then the old one is put back: it lacks the votes of the one
// between. It is refused, also by members that were restarted since, and with TLS one voter that
// knows is enough. The newer disk is welcome.
func TestADiskThatWasReplacedDoesNotComeBack(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		encrypted bool
		meanwhile func(s *scene, old, other *procs.Node)
	}{
		"without TLS":                  {false, func(*scene, *procs.Node, *procs.Node) {}},
		"TLS":                          {true, func(*scene, *procs.Node, *procs.Node) {}},
		"without TLS, members restart": {false, restartOthers},
		"TLS, members restart":         {true, restartOthers},
		"TLS, one member forgets it all": {true, func(s *scene, _, other *procs.Node) {
			s.stop(other)
			s.replaceState(other, s.t.TempDir())
			require.NoError(s.t, other.Start())
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := layOut(t, 3, quick())
			if c.encrypted {
				s, _ = layOutWithTLS(t)
			}
			require.NoError(t, s.Start())
			g := s.agree(s.Nodes(), nil)
			followers := s.others(g.Leader)
			n, other := followers[0], followers[1]
			s.settles(n)
			old := s.copyState(n)
			require.NoError(t, n.Kill())
			s.replaceState(n, t.TempDir())
			require.NoError(t, n.Start())
			s.agree(s.Nodes(), same(g))
			s.stop(n)
			newer := s.copyState(n)
			c.meanwhile(s, n, other)
			g = s.agree(s.others(cluster.NodeID(n.Name)), nil)

			s.replaceState(n, old)
			require.NoError(t, n.Start())
			s.eventually("it is told", func() bool { return s.logged(n, `"error"`, "data-dir-outdated") })
			s.tells([]string{"data-dir-outdated"}, "--admin", s.node(g.Leader).AdminAddr)
			s.eventually("it takes no part", func() bool {
				return s.member(other, n.Name).Link != "up" && s.member(s.node(g.Leader), n.Name).Link != "up"
			})
			s.agree(s.others(cluster.NodeID(n.Name)), same(g))

			s.stop(n)
			s.replaceState(n, newer)
			require.NoError(t, n.Start())
			s.agree(s.Nodes(), same(g))
		})
	}
}

// restartOthers restarts all nodes that are up but the one that was stopped.
func restartOthers(s *scene, stopped, _ *procs.Node) {
	for _, n := range s.others(cluster.NodeID(stopped.Name)) {
		s.stop(n)
		require.NoError(s.t, n.Start())
		s.agree(s.others(cluster.NodeID(stopped.Name)), nil)
	}
}

// settles waits until all others would see a node die: they are linked for a second.
func (s *scene) settles(n *procs.Node) {
	s.eventually("all have had links to "+n.Name+" for a second", func() bool {
		for _, o := range s.others(cluster.NodeID(n.Name)) {
			st, err := o.Status(s.t.Context())
			m := admin.MemberIn(st, cluster.NodeID(n.Name))
			if err != nil || m.Link != "up" || m.LinkFor < 1 {
				return false
			}
		}
		return true
	})
}
