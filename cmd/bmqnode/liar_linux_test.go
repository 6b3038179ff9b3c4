package main_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/findings"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/daemon/procs"
	"github.com/bmqelect/bmqelect/lsn"
	"github.com/bmqelect/bmqelect/netmesh"
)

// liar is a voter, played by the test over real links, that claims to lead.
type liar struct {
	*netmesh.Mesh
	name cluster.NodeID
}

// claims tells a node that the liar leads.
func (l liar) claims(t *testing.T, to *procs.Node, claim elector.Message) {
	t.Helper()
	claim.Kind = elector.LeaderHeartbeat
	require.Eventually(t, func() bool {
		return l.Send(elector.NodeID(to.Name), cluster.DefaultGroup, claim)
	}, patience, 10*time.Millisecond)
}

// withLiar replaces a follower of three by a liar, which has its name.
func withLiar(t *testing.T) (s *scene, leader, follower *procs.Node, l liar) {
	s = play(t, 3, quick())
	g := s.agree(s.Nodes(), nil)
	others := s.others(g.Leader)
	leader, follower = s.node(g.Leader), others[0]
	s.provablyDead(others[1], leader, follower)
	s.agree([]*procs.Node{leader, follower}, same(g))
	m, err := netmesh.Listen(netmesh.Config{
		Cluster: cluster.DefaultCluster, Node: cluster.NodeID(others[1].Name), Identity: uuid.New(),
		Boot: 1, Bind: "127.0.0.1:0",
	}, stranger{})
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		require.NoError(t, m.Close(ctx))
	})
	for _, n := range []*procs.Node{leader, follower} {
		m.AddPeer(elector.NodeID(n.Name), n.MeshAddr)
	}
	return s, leader, follower, liar{m, cluster.NodeID(others[1].Name)}
}

// provablyDead kills a node whose death the others then have proof of: otherwise they would not
// let another process take its name. A link that is a moment old has no evidence connection yet.
func (s *scene) provablyDead(n *procs.Node, others ...*procs.Node) {
	for range 10 {
		require.NoError(s.t, n.Kill())
		for end := time.Now().Add(patience / 4); time.Now().Before(end); {
			if !slices.ContainsFunc(others, func(o *procs.Node) bool {
				return s.said(o.Name, "peer is dead", "peer="+n.Name) == 0
			}) {
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
		require.NoError(s.t, n.Start())
		s.agree(s.Nodes(), nil)
	}
	require.Fail(s.t, "nobody has proof of a death")
}

// accused are the voters that a node names.
func accused(t *testing.T, n *procs.Node) (names []cluster.NodeID) {
	st, err := n.Status(t.Context())
	require.NoError(t, err)
	for _, f := range st.Findings {
		if f.Kind == findings.FalseClaim {
			names = append(names, f.Peer)
		}
	}
	return names
}

// TestAVoterThatClaimsAgainstALeaderIsNamed in the term of the leader or above, by the leader.
func TestAVoterThatClaimsAgainstALeaderIsNamed(t *testing.T) {
	t.Parallel()
	for name, ahead := range map[string]lsn.Term{"in its term": 0, "above it": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, leader, follower, l := withLiar(t)
			var g cluster.GroupStatus
			s.eventually("the leader names it", func() bool {
				g = s.agree([]*procs.Node{leader, follower}, nil)
				l.claims(t, s.node(g.Leader), elector.Message{Term: g.Term + ahead, SentAt: 1})
				return len(accused(t, s.node(g.Leader))) > 0
			})
			require.Equal(t, []cluster.NodeID{l.name}, accused(t, s.node(g.Leader)))
			found := s.tells([]string{"false-claim"}, "--admin", leader.AdminAddr)
			require.Contains(t, found["false-claim"][0].Where, string(l.name))
			out, _, _ := bmqnode(t, "status", "--admin", leader.AdminAddr)
			require.Contains(t, out, "false-claim")
			require.Contains(t, out, `node "`+string(l.name)+`" claims to lead`)
		})
	}
}

// TestAVoterThatClaimsAndIsSilentIsNamed by a follower that it draws from its leader again and
// again. Once or twice may happen to a correct voter.
func TestAVoterThatClaimsAndIsSilentIsNamed(t *testing.T) {
	t.Parallel()
	s, leader, follower, l := withLiar(t)
	for claims := 0; len(accused(t, follower)) == 0; claims++ {
		require.Less(t, claims, 30)
		g := s.agree([]*procs.Node{leader, follower}, nil)
		if g.Leader != cluster.NodeID(leader.Name) {
			_, _, _ = bmqnode(t, "transfer", leader.Name, "--admin", follower.AdminAddr)
			continue
		}
		l.claims(t, follower, elector.Message{Term: g.Term + 1, SentAt: 1})
		s.eventually("it is followed", func() bool {
			st, err := follower.Status(t.Context())
			return err == nil && st.Groups[0].Term > g.Term
		})
	}
	require.Equal(t, []cluster.NodeID{l.name}, accused(t, follower))
	require.Empty(t, accused(t, leader))
}
