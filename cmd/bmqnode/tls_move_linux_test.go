package main_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/base/certs"
	"github.com/bmqelect/bmqelect/internal/daemon/procs"
)

// TestAMoveToTLSAndBack leads a cluster without TLS, of this build and of each released one,
// to TLS that is demanded, and back. Leadership moves when the leader itself restarts, and
// never else.
func TestAMoveToTLSAndBack(t *testing.T) {
	t.Parallel()
	builds := map[string]string{"this build": ""}
	list, err := os.ReadFile("../../testdata/releases.txt")
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
			old := binary
			if commit != "" {
				old = buildRelease(t, commit)
			}
			moveToTLSAndBack(t, old)
		})
	}
}

func moveToTLSAndBack(t *testing.T, old string) {
	options := quick()
	delete(options, "rehearsal")
	s, pki := layOut(t, 3, options), filepath.Join(t.TempDir(), "pki")
	plain := map[string][]byte{}
	for _, n := range s.Nodes() {
		n.Binary = old
		var err error
		plain[n.Name], err = os.ReadFile(n.ConfigFile)
		require.NoError(t, err)
	}
	s.demandToken()
	require.NoError(t, s.Start())
	g := s.agree(s.Nodes(), nil)
	does(t, "certs", "--dir", pki, "--accept-plain", "n1", "n2", "n3")

	g = s.restartEach(g, func(n *procs.Node) {
		n.Binary = binary
		encrypt(t, n, filepath.Join(pki, n.Name))
	})
	s.allSay("the links have TLS, and gossip may be encrypted", func(st cluster.Status) bool {
		return linksWithTLS(st) == 2 && st.AcceptsPlain && st.GossipEncryption == "accepted"
	})
	out := does(t, "status", "--admin", s.Nodes()[0].AdminAddr)
	require.Contains(t, out, "TLS: members without it are accepted by n1, n2, n3")
	require.Contains(t, out, "gossip: encryption is not required by n1 (accepted), n2 (accepted), ")
	s.rotates(pki)
	for _, n := range s.Nodes() {
		require.NoError(t, os.Remove(filepath.Join(pki, n.Name, "accept-plain")))
		require.NoError(t, n.Signal(syscall.SIGHUP))
	}
	s.allSay("nothing passes without encryption", func(st cluster.Status) bool {
		return linksWithTLS(st) == 2 && !st.AcceptsPlain && st.GossipEncryption == "required"
	})
	g = s.agree(s.Nodes(), same(g))

	for _, n := range s.Nodes() {
		require.NoError(t, os.WriteFile(filepath.Join(pki, n.Name, "accept-plain"), nil, 0o600))
		require.NoError(t, n.Signal(syscall.SIGHUP))
	}
	s.rotates(pki, "--plain")
	s.allSay("both are accepted", func(st cluster.Status) bool {
		return linksWithTLS(st) == 2 && st.AcceptsPlain && st.GossipEncryption == "none"
	})
	s.restartEach(g, func(n *procs.Node) {
		n.Binary = old
		require.NoError(t, os.WriteFile(n.ConfigFile, plain[n.Name], 0o600))
	})
	s.allSay("TLS is gone", func(st cluster.Status) bool { return linksWithTLS(st) == 0 })
	require.Len(t, s.transitions(becameLeader), 3, "the first, and one for each restart of a leader")
}

// restartEach restarts each node, the leader last, after a change.
func (s *scene) restartEach(
	g cluster.GroupStatus, change func(*procs.Node),
) cluster.GroupStatus {
	restart := func(n *procs.Node) {
		s.stop(n)
		change(n)
		require.NoError(s.t, n.Start())
	}
	for _, n := range s.others(g.Leader) {
		restart(n)
		s.agree(s.Nodes(), same(g))
	}
	restart(s.node(g.Leader))
	return s.agree(s.Nodes(), above(g.Term))
}

// allSay waits until all nodes say of themselves what is wanted, and see each other in gossip.
func (s *scene) allSay(what string, want func(cluster.Status) bool) {
	s.t.Helper()
	s.eventually(what, func() bool {
		for _, n := range s.Nodes() {
			st, err := n.Status(s.t.Context())
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

// rotates gives all nodes a new key of gossip.
func (s *scene) rotates(pki string, more ...string) {
	s.t.Helper()
	args := []string{"rotate-gossip-key", "--dir", pki, "--admin", s.allAdminAddrs(),
		"--admin-token-file", s.tokenFile}
	out := does(s.t, append(args, more...)...)
	for _, n := range s.Nodes() {
		require.Equal(s.t, 3, strings.Count(out, n.Name+" "), out)
	}
}

// allAdminAddrs are those of all nodes. On loopback a key goes to no other address.
func (s *scene) allAdminAddrs() string {
	var all []string
	for _, n := range s.Nodes() {
		all = append(all, n.AdminAddr)
	}
	return strings.Join(all, ",")
}

// keysOfGossip reads them, as text.
func keysOfGossip(t *testing.T, dir string) string {
	text, err := os.ReadFile(filepath.Join(dir, "gossip.key"))
	require.NoError(t, err)
	return string(text)
}

// TestGossipKeyIsRotated in a cluster that runs; a node that is down stops that before
// anything is lost. No key is in an output or a log.
func TestGossipKeyIsRotated(t *testing.T) {
	t.Parallel()
	s, pki := layOutWithTLS(t)
	s.demandToken()
	require.NoError(t, s.Start())
	g := s.agree(s.Nodes(), nil)
	required := func(st cluster.Status) bool { return st.GossipEncryption == "required" }
	s.allSay("gossip is encrypted from the start", required)
	seen := []string{keysOfGossip(t, pki)}
	rotated := func() {
		s.rotates(pki)
		next := keysOfGossip(t, pki)
		require.NotContains(t, seen, next)
		require.Equal(t, 1, strings.Count(next, "\n"))
		seen = append(seen, next)
		for _, n := range s.Nodes() {
			require.Equal(t, next, keysOfGossip(t, filepath.Join(pki, n.Name)))
		}
		s.allSay("members stay", required)
		s.agree(s.Nodes(), same(g))
	}
	rotated()
	unnamed, errs, code := bmqnode(t, "rotate-gossip-key", "--dir", pki, "--admin",
		s.node(g.Leader).AdminAddr)
	require.Equal(t, 1, code)
	require.Empty(t, unnamed)
	require.Contains(t, errs, "a key is not sent there, since only a node named this address")

	down := s.others(g.Leader)[0]
	require.NoError(t, down.Kill())
	ask := s.allAdminAddrs()
	out, errs, code := bmqnode(t, "rotate-gossip-key", "--dir", pki, "--admin", ask,
		"--admin-token-file", s.tokenFile)
	require.Equal(t, 1, code)
	require.Empty(t, out)
	require.Contains(t, errs, `stopped at the step "add": node `+down.Name+" cannot be asked: ")
	require.Contains(t, errs, "Start it, or name its address with --admin, too")
	require.Contains(t, errs, "No node encrypts with the new key, and each goes on with the one before")
	require.Equal(t, seen[len(seen)-1], keysOfGossip(t, pki), "all are asked before anything changes")
	require.NoError(t, down.Start())
	s.allSay("it is back", required)
	rotated()

	all := errs
	s.mu.Lock()
	for _, l := range s.lines {
		all += l.Text
	}
	s.mu.Unlock()
	for _, key := range seen {
		require.NotContains(t, all, strings.TrimSpace(key))
	}
	fails(t, 2, "--dir is empty", "rotate-gossip-key")
	fails(t, 1, "has no certificate", "rotate-gossip-key", "--dir", t.TempDir(), "--admin", ask)
}

// TestNodeWithAWrongGossipKeySaysWhy it sees nobody in gossip. Links do not need that.
func TestNodeWithAWrongGossipKeySaysWhy(t *testing.T) {
	t.Parallel()
	s, pki := playWithTLS(t)
	g := s.agree(s.Nodes(), nil)
	n := s.others(g.Leader)[0]
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.NoError(t, n.Stop(ctx))
	key := certs.NewGossipKey().Text()
	require.NoError(t, os.WriteFile(filepath.Join(pki, n.Name, "gossip.key"), []byte(key), 0o600))
	require.NoError(t, n.Start())
	s.eventually("it says so", func() bool {
		return s.said(n.Name, "join address does not answer, or belongs to another cluster; it is tried again",
			"the other end encrypts gossip with a key that this node does not have") > 0
	})
	s.eventually("the others do not see it", func() bool {
		st, err := s.node(g.Leader).Status(t.Context())
		return err == nil && st.Members[0].Gossip+st.Members[1].Gossip != "alivealive"
	})
	s.agree(s.Nodes(), same(g))
}
