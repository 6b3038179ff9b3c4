package deploy

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/daemon/procs"
	"github.com/bmqelect/bmqelect/internal/testkit/nodes"
)

// TestAMoveToTLSAndBack leads a cluster without TLS, of this build and of each released one,
// to TLS that is demanded, and back. Leadership moves when the leader itself restarts, and
// at no other time.
func TestAMoveToTLSAndBack(t *testing.T) {
	t.Parallel()
	builds := map[string]string{"this build": ""}
	list, err := os.ReadFile(nodes.Top + "/testdata/releases.txt")
	require.NoError(t, err)
	for line := range strings.Lines(string(list)) {
		var version, commit string
		if n, _ := fmt.Sscan(line, &version, &commit); n == 2 && version != "#" {
			builds[version] = commit
		}
	}
	for version, commit := range builds {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			old := nodes.Binary
			if commit != "" {
				old = buildRelease(t, commit)
			}
			moveToTLSAndBack(t, old)
		})
	}
}

func moveToTLSAndBack(t *testing.T, old string) {
	options := nodes.Quick()
	delete(options, "rehearsal")
	delete(options, "realtime") // the released ones do not know it
	s, pki := nodes.LayOut(t, options, procs.Numbered(3)...), filepath.Join(t.TempDir(), "pki")
	plain := map[string][]byte{}
	for _, n := range s.Nodes() {
		n.Binary = old
		var err error
		plain[n.Name], err = os.ReadFile(n.ConfigFile)
		require.NoError(t, err)
	}
	s.DemandToken()
	require.NoError(t, s.Start())
	g := s.Agree(s.Nodes(), nil)
	nodes.Does(t, "certs", "--dir", pki, "--accept-plain", "n1", "n2", "n3")

	g = restartEach(s, g, func(n *procs.Node) {
		n.Binary = nodes.Binary
		nodes.Encrypt(t, n, pki)
	})
	allSay(s, "the links have TLS, and gossip may be encrypted", func(st cluster.Status) bool {
		return linksWithTLS(st) == 2 && st.AcceptsPlain && st.GossipEncryption == "accepted"
	})
	out := nodes.Does(t, "status", "--admin", s.Nodes()[0].AdminAddr)
	require.Contains(t, out, "TLS: members without it are accepted by n1, n2, n3")
	require.Contains(t, out, "gossip: encryption is not required by n1 (accepted), n2 (accepted), ")
	rotates(s, pki)
	for _, n := range s.Nodes() {
		require.NoError(t, os.Remove(filepath.Join(pki, n.Name, "accept-plain")))
		require.NoError(t, n.Signal(syscall.SIGHUP))
	}
	allSay(s, "nothing passes without encryption", func(st cluster.Status) bool {
		return linksWithTLS(st) == 2 && !st.AcceptsPlain && st.GossipEncryption == "required"
	})
	g = s.Agree(s.Nodes(), nodes.Same(g))

	for _, n := range s.Nodes() {
		require.NoError(t, os.WriteFile(filepath.Join(pki, n.Name, "accept-plain"), nil, 0o600))
		require.NoError(t, n.Signal(syscall.SIGHUP))
	}
	rotates(s, pki, "--plain")
	allSay(s, "both are accepted", func(st cluster.Status) bool {
		return linksWithTLS(st) == 2 && st.AcceptsPlain && st.GossipEncryption == "none"
	})
	restartEach(s, g, func(n *procs.Node) {
		n.Binary = old
		require.NoError(t, os.WriteFile(n.ConfigFile, plain[n.Name], 0o600))
	})
	allSay(s, "TLS is gone", func(st cluster.Status) bool { return linksWithTLS(st) == 0 })
	require.Len(t, s.Transitions(nodes.BecameLeader), 3, "the first, and one for each restart of a leader")
}

// buildRelease builds bmqnode of an earlier commit, if the history is there.
func buildRelease(t *testing.T, commit string) (built string) {
	dir := filepath.Join(filepath.Dir(nodes.Binary), commit)
	require.NoError(t, os.MkdirAll(dir, 0o700))
	unpack := exec.Command("sh", "-c", `git archive "$1" | tar -x -C "$2"`, "sh", commit, dir)
	unpack.Dir = nodes.Top
	out, err := unpack.CombinedOutput()
	if _, missing := os.Stat(filepath.Join(dir, "go.mod")); missing != nil {
		t.Skipf("the history does not reach back to %s: %v: %s", commit, err, out)
	}
	built = filepath.Join(dir, "released")
	require.NoError(t, nodes.Build(dir, built, "-buildvcs=false"))
	return built
}

// restartEach restarts each node, the leader last, after a change.
func restartEach(
	s *nodes.Scene, g cluster.GroupStatus, change func(*procs.Node),
) cluster.GroupStatus {
	restart := func(n *procs.Node) {
		s.Halt(n)
		change(n)
		require.NoError(s.T, n.Start())
	}
	for _, n := range s.Others(g.Leader) {
		restart(n)
		s.Agree(s.Nodes(), nodes.Same(g))
	}
	restart(s.Named(g.Leader))
	return s.Agree(s.Nodes(), nodes.Above(g.Term))
}

// allSay waits until all nodes say of themselves what is wanted, and see each other in gossip.
func allSay(s *nodes.Scene, what string, want func(cluster.Status) bool) {
	s.T.Helper()
	s.Eventually(what, func() bool {
		for _, n := range s.Nodes() {
			st, err := n.Status(s.T.Context())
			if err != nil || !want(st) {
				return false
			}
			for _, m := range st.Members {
				if m.Gossip != "alive" || m.Link != "up" {
					return false
				}
			}
		}
		return true
	})
}

// linksWithTLS counts a node's links that are encrypted.
func linksWithTLS(st cluster.Status) (count int) {
	for _, m := range st.Members {
		if m.LinkTLS {
			count++
		}
	}
	return count
}

// rotates gives all nodes a new key of gossip. None of the keys is in what it or a node says.
func rotates(s *nodes.Scene, pki string, more ...string) {
	s.T.Helper()
	file := filepath.Join(pki, "gossip.key")
	before, err := os.ReadFile(file)
	require.NoError(s.T, err)
	args := []string{"rotate-gossip-key", "--dir", pki, "--admin", s.Admins(),
		"--admin-token-file", s.TokenFile}
	out := nodes.Does(s.T, append(args, more...)...)
	after, err := os.ReadFile(file)
	require.NoError(s.T, err)
	require.NotEqual(s.T, before, after)
	said := out
	for _, l := range s.Lines() {
		said += l.Text
	}
	for _, n := range s.Nodes() {
		require.Equal(s.T, 3, strings.Count(out, n.Name+" "), out)
		own, err := os.ReadFile(filepath.Join(pki, n.Name, "gossip.key"))
		require.NoError(s.T, err)
		require.Equal(s.T, after, own)
	}
	for key := range strings.FieldsSeq(string(before) + string(after)) {
		require.True(s.T, key == "plain" || !strings.Contains(said, key), "a key was said")
	}
}
