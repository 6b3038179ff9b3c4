package main_test

import (
	"os"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster/findings"
	"github.com/bmqelect/bmqelect/internal/daemon/procs"
)

// TestANodeThatIsAloneSaysWhy starts one of two nodes, which joins only itself.
func TestANodeThatIsAloneSaysWhy(t *testing.T) {
	t.Parallel()
	s := layOut(t, 2, quick())
	n1, n2 := s.Nodes()[0], s.Nodes()[1]
	s.joins(n1, n1.GossipAddr)
	s.joins(n2, n1.GossipAddr)
	require.NoError(t, n1.Start())
	time.Sleep(20 * time.Second) // it is alone only after 30 s
	s.eventually("n1 finds that it is alone", func() bool {
		st, err := n1.Status(t.Context())
		return err == nil && len(st.Findings) == 1 && st.Findings[0].Kind == findings.Alone
	})
	stdout := does(t, "status", "--admin", n1.AdminAddr)
	require.Contains(t, stdout, `alone (n1): node "n1" has found no other member: the addresses to join (`+
		n1.GossipAddr+`) lead only to this node itself; `)
	found, code := examine(t, "--admin", n1.AdminAddr)
	require.Equal(t, 1, code)
	require.Len(t, found["alone"], 1)
	require.Len(t, found["no-leader"], 1)
	require.Empty(t, found["never-seen"], "that follows from it")

	require.NoError(t, n2.Start())
	s.eventually("n1 has found n2", func() bool {
		st, err := n1.Status(t.Context())
		return err == nil && len(st.Findings) == 0
	})
	for _, n := range s.Nodes() {
		require.True(t, s.logged(n, "node started", n.AdminAddr, n.MeshAddr, n.GossipAddr))
	}
}

// joins gives a node's file another address to join.
func (s *scene) joins(n *procs.Node, addr string) {
	text, err := os.ReadFile(n.ConfigFile)
	require.NoError(s.t, err)
	var all map[string]any
	require.NoError(s.t, yaml.Unmarshal(text, &all))
	all["join"] = []string{addr}
	text, err = yaml.Marshal(all)
	require.NoError(s.t, err)
	require.NoError(s.t, os.WriteFile(n.ConfigFile, text, 0o600))
}
