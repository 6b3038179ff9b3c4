package main_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/daemon/admin"
	"github.com/bmqelect/bmqelect/internal/daemon/procs"
)

// setMeta adds --meta to a node's configuration, or changes the one that was added.
func (s *scene) setMeta(n *procs.Node, meta string) {
	text, err := os.ReadFile(n.ConfigFile)
	require.NoError(s.t, err)
	before, _, _ := strings.Cut(string(text), "\nmeta: ")
	text = fmt.Appendf(nil, "%s\nmeta: %q\n", strings.TrimSpace(before), meta)
	require.NoError(s.t, os.WriteFile(n.ConfigFile, text, 0o600))
}

// leaderAt is what a node answers at /v1/leader, whether it leads or not.
func (s *scene) leaderAt(n *procs.Node) (l admin.Leader) {
	resp, err := http.Get("http://" + n.AdminAddr + "/v1/leader")
	require.NoError(s.t, err)
	defer resp.Body.Close()
	require.NoError(s.t, json.NewDecoder(resp.Body).Decode(&l))
	return l
}

// firstEvent is how a node's stream of events begins.
func (s *scene) firstEvent(n *procs.Node) (kind string, st cluster.Status) {
	resp, err := http.Get("http://" + n.AdminAddr + "/v1/events")
	require.NoError(s.t, err)
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() && lines.Text() != "" {
		if text, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
			kind = text
		}
		if text, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			require.NoError(s.t, json.Unmarshal([]byte(text), &st))
		}
	}
	return kind, st
}

// Where clients find the leader is known on every node: over HTTP, in the stream of events
// and to the hooks. A leader that comes back with another address is found there.
func TestEveryProcessKnowsWhereTheLeaderIs(t *testing.T) {
	t.Parallel()
	defer http.DefaultClient.CloseIdleConnections()
	dir, options := t.TempDir(), quick()
	hook := fmt.Sprintf(`echo "$BMQ_EVENT $BMQ_LEADER $BMQ_LEADER_META." >>%s/$BMQ_NODE`, dir)
	options["on-leader"], options["on-follower"] = hook, hook
	s := layOut(t, 3, options)
	for _, n := range s.Nodes() {
		s.setMeta(n, "http://"+n.Name+".example:80/?a=b&c")
	}
	require.NoError(t, s.Start())
	known := func(meta string) func(cluster.GroupStatus) bool {
		return func(g cluster.GroupStatus) bool { return g.LeaderMeta == meta }
	}
	check := func(leader *procs.Node, meta string) {
		t.Helper()
		g := s.agree(s.Nodes(), known(meta))
		for _, n := range s.Nodes() {
			l := s.leaderAt(n)
			require.Equal(t, []string{leader.Name, meta}, []string{string(l.Leader), l.Meta}, n.Name)
			kind, st := s.firstEvent(n)
			require.Equal(t, "status", kind)
			now := admin.GroupIn(st, cluster.DefaultGroup)
			require.Equal(t, []any{g.Leader, g.Term, meta}, []any{now.Leader, now.Term, now.LeaderMeta})
			want := fmt.Sprintf("follower %s %s.\n", leader.Name, meta)
			if n == leader {
				want = strings.Replace(want, "follower", "leader", 1)
			}
			s.eventually("the hook of "+n.Name, func() bool {
				told, _ := os.ReadFile(filepath.Join(dir, n.Name))
				return strings.HasSuffix(string(told), want)
			})
		}
	}
	first := s.node(s.agree(s.Nodes(), func(cluster.GroupStatus) bool { return true }).Leader)
	check(first, "http://"+first.Name+".example:80/?a=b&c")

	require.NoError(t, first.Kill())
	_ = s.exit(first)
	s.agree(s.others(cluster.NodeID(first.Name)), func(cluster.GroupStatus) bool { return true })
	s.setMeta(first, "http://elsewhere.example")
	require.NoError(t, first.Start())
	s.eventually("it leads again", func() bool {
		_, _, code := bmqnode(t, "transfer", "--to", first.Name, "--admin", first.AdminAddr)
		return code == 0
	})
	check(first, "http://elsewhere.example")
}

func TestMetaThatNobodyMayBeToldIsAMistake(t *testing.T) {
	t.Parallel()
	fails(t, 2, `--meta is "two\nlines", but must be printable text of at most 512 `, "run", "--node",
		"a", "--voters", "a", "--data-dir", t.TempDir(),
		"--meta", "two\nlines")
}
