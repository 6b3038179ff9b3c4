package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/internal/daemon/admin"
	"github.com/bmqelect/bmqelect/internal/daemon/procs"
)

// playWithTLS starts a mesh of three with the certificates that the command makes.
func playWithTLS(t *testing.T) (s *scene, pki string) {
	s, pki = layOutWithTLS(t)
	require.NoError(t, s.Start())
	return s, pki
}

// layOutWithTLS prepares it.
func layOutWithTLS(t *testing.T) (s *scene, pki string) {
	s, pki = layOut(t, 3, quick()), filepath.Join(t.TempDir(), "pki")
	out := does(t, "certs", "--dir", pki, "n1", "n2", "n3")
	require.Regexp(t, `^n1: \S+/pki/n1, valid until [-\dT:]+Z\nn2: [^\n]+\nn3: [^\n]+\n$`, out)
	s.encrypt(pki)
	return s, pki
}

// encrypt gives all nodes TLS, with certificates in a directory.
func (s *scene) encrypt(pki string) {
	for _, n := range s.Nodes() {
		encrypt(s.t, n, filepath.Join(pki, n.Name))
	}
}

// encrypt writes into a node's file where its certificate is.
func encrypt(t testing.TB, n *procs.Node, dir string) {
	configure(t, n, "tls-dir: "+dir)
}

// said counts the lines of a node's log with that message and detail.
func (s *scene) said(node, message, detail string) (count int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.lines {
		if l.Node == node && l.Message == message && strings.Contains(l.Detail, detail) {
			count++
		}
	}
	return count
}

// TestClusterWithTLS: a killed leader is proven dead, and certificates are renewed while it
// runs, without a change of the leader.
func TestClusterWithTLS(t *testing.T) {
	t.Parallel()
	s, pki := playWithTLS(t)
	first := s.agree(s.Nodes(), nil)
	s.eventually("all have had links to the leader for a second, and evidence connections", func() bool {
		for _, n := range s.others(first.Leader) {
			st, err := n.Status(t.Context())
			m := admin.MemberIn(st, first.Leader)
			if err != nil || m.Link != "up" || m.LinkFor < 1 {
				return false
			}
		}
		return true
	})
	require.NoError(t, s.node(first.Leader).Kill())
	second := s.agree(s.others(first.Leader), above(first.Term))
	for _, n := range s.others(first.Leader) {
		require.Equal(t, 1, s.said(n.Name, "peer is dead", "peer="+string(first.Leader)), n.Name)
	}
	require.NoError(t, s.node(first.Leader).Start())
	s.agree(s.Nodes(), same(second))

	out := does(t, "certs", "--dir", pki)
	require.Equal(t, 3, strings.Count(out, "valid until"))
	for _, n := range s.Nodes() {
		require.NoError(t, n.Signal(syscall.SIGHUP))
	}
	s.eventually("all have the new ones", func() bool {
		for _, n := range s.Nodes() {
			if s.said(n.Name, "new certificate in use", "until=") == 0 {
				return false
			}
		}
		return true
	})
	s.agree(s.Nodes(), same(second))
	follower := s.others(second.Leader)[0]
	require.NoError(t, follower.Kill())
	require.NoError(t, follower.Start())
	s.agree(s.Nodes(), same(second))
	for _, n := range s.Nodes() {
		lost := s.said(n.Name, "link down", "peer="+string(second.Leader))
		require.Zero(t, lost, "%s kept its link to the leader", n.Name)
	}
	out = does(t, "status", "--admin", s.Nodes()[0].AdminAddr)
	require.Contains(t, out, "TLS: the certificate that ends first is that of n")
}

// TestCertificateCommandLeavesNoKeyOpen to others, and shows none.
func TestCertificateCommandLeavesNoKeyOpen(t *testing.T) {
	t.Parallel()
	pki := filepath.Join(t.TempDir(), "pki")
	out, errs, code := bmqnode(t, "certs", "--dir", pki, "--cluster", "bees", "n1")
	require.Zero(t, code)
	require.NotContains(t, out+errs, "PRIVATE")
	files := 0
	require.NoError(t, filepath.Walk(pki, func(path string, info os.FileInfo, err error) error {
		want := os.FileMode(0o600)
		if info.IsDir() {
			want = 0o700
		} else {
			files++
		}
		require.Equal(t, want, info.Mode().Perm(), path)
		return err
	}))
	require.Equal(t, 7, files, "ca.crt, ca.key and gossip.key; and ca.crt, tls.crt, tls.key, gossip.key of n1")
	for want, args := range map[string][]string{
		"--dir is empty":                              {"n1"},
		"--valid is 0s":                               {"--dir", pki, "--valid", "0s"},
		`is of cluster "bees", not "wasps"`:           {"--dir", pki, "--cluster", "wasps", "n2"},
		`cluster "a b": a certificate can name`:       {"--dir", pki + "2", "--cluster", "a b", "n2"},
		`node "../n1": it cannot be the name of a`:    {"--dir", pki, "../n1"},
		`node "ca.crt": it cannot be the name of a`:   {"--dir", pki, "ca.crt"},
		"has no certificate to renew: name the nodes": {"--dir", pki + "3"},
	} {
		_, errs, code = bmqnode(t, append([]string{"certs"}, args...)...)
		require.NotZero(t, code, args)
		require.Contains(t, errs, want)
	}
}

// TestNodeThatIsToldToReloadWhatIsWrongGoesOn, and says so.
func TestNodeThatIsToldToReloadWhatIsWrongGoesOn(t *testing.T) {
	t.Parallel()
	s, pki := playWithTLS(t)
	leader := s.agree(s.Nodes(), nil)
	n := s.node(leader.Leader)
	require.NoError(t, os.Truncate(filepath.Join(pki, n.Name, "tls.crt"), 0))
	require.NoError(t, n.Signal(syscall.SIGHUP))
	s.eventually("it says so", func() bool {
		return s.said(n.Name, "--tls-dir not read again: the node goes on with what it had", "tls.crt") > 0 &&
			s.said(n.Name, "finding", "goes on with the certificate") > 0
	})
	s.agree(s.Nodes(), same(leader))
	out, _, _ := bmqnode(t, "doctor", n.AdminAddr)
	require.Contains(t, out, "goes on with the certificate that ends at")
}
