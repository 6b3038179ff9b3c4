package certs

import (
	"crypto/ed25519"
	"crypto/x509"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// leaf loads a node's directory, and checks its certificate against its CAs.
func leaf(t *testing.T, dir string) *x509.Certificate {
	t.Helper()
	own, roots, err := Load(dir)
	require.NoError(t, err)
	for _, usage := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} {
		_, err = own.Leaf.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{usage}})
		require.NoError(t, err)
	}
	require.IsType(t, ed25519.PublicKey{}, own.Leaf.PublicKey)
	return own.Leaf
}

func TestCertificatesAreMadeAndRenewed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pki")
	made, err := Issue(dir, "bees", []string{"n1", "n2"}, time.Hour)
	require.NoError(t, err)
	require.Len(t, made, 2)
	require.Equal(t, Issued{"n1", filepath.Join(dir, "n1"), made[0].Until}, made[0])
	require.WithinDuration(t, time.Now().Add(time.Hour), made[0].Until, time.Minute)
	first := leaf(t, dir+"/n1")
	require.Empty(t, Problem(first, "bees", "n1"))
	require.Empty(t, Problem(first, "bees", ""))
	require.NotEmpty(t, Problem(first, "bees", "n2"))
	require.NotEmpty(t, Problem(first, "wasps", ""))
	before := leaf(t, dir+"/n2")

	made, err = Issue(dir, "", []string{"n1"}, 2*time.Hour)
	require.NoError(t, err)
	second := leaf(t, dir+"/n1")
	require.Empty(t, Problem(second, "bees", "n1"), "the CA knows its cluster")
	require.NotEqual(t, first.PublicKey, second.PublicKey)
	require.Equal(t, made[0].Until.Unix(), second.NotAfter.Unix())
	require.Equal(t, before, leaf(t, dir+"/n2"), "only what is named")

	made, err = Issue(dir, "", nil, time.Hour)
	require.NoError(t, err)
	require.Len(t, made, 2, "all that are there")
	require.NotEqual(t, before, leaf(t, dir+"/n2"))
	made, err = Issue(dir, "", nil, 2*caValid)
	require.NoError(t, err)
	require.Less(t, time.Until(made[0].Until), caValid, "not longer than the CA")
}

// TestOperatorsAreNoNodes, and are renewed with these.
func TestOperatorsAreNoNodes(t *testing.T) {
	dir := t.TempDir()
	_, err := Issue(dir, "bees", []string{"n1", "operator/alice"}, time.Hour)
	require.NoError(t, err)
	for range 2 {
		own, roots, cluster, err := LoadClient(dir + "/operator/alice")
		require.NoError(t, err)
		require.Equal(t, "bees", cluster)
		chain := []*x509.Certificate{own.Leaf}
		_, err = Verify(chain, roots, x509.ExtKeyUsageClientAuth)
		require.NoError(t, err)
		_, err = Verify(chain, roots, x509.ExtKeyUsageServerAuth)
		require.Error(t, err)
		require.Equal(t, []string{"operator/alice"}, NamesIn(own.Leaf, "bees"))
		require.Empty(t, NamesIn(own.Leaf, "wasps"))
		for _, node := range []string{"", "alice", "operator", "operator/alice"} {
			require.NotEmpty(t, Problem(own.Leaf, "bees", node), node)
		}
		_, err = Issue(dir, "", nil, 2*time.Hour)
		require.NoError(t, err)
		renewed, _, _, err := LoadClient(dir + "/operator/alice")
		require.NoError(t, err)
		require.NotEqual(t, own.Leaf.PublicKey, renewed.Leaf.PublicKey)
		require.NoFileExists(t, dir+"/operator/alice/gossip.key")
		require.NoError(t, ChangeIssuedGossipKeys(dir, GossipAdd, NewGossipKey()))
		require.NoFileExists(t, dir+"/operator/alice/gossip.key")
	}
	node := leaf(t, dir+"/n1")
	require.Equal(t, []string{"n1"}, NamesIn(node, "bees"))
	require.Empty(t, NamesIn(&x509.Certificate{DNSNames: []string{"operator/eve"}}, "bees"))
	for name, is := range map[string]bool{"operator/alice": true, "operator/": false, "n1": false} {
		require.Equal(t, is, IsOperator(name), name)
	}
	require.NoError(t, node.VerifyHostname("n1"), "for clients that look for a name")
	for _, name := range []string{"operator", "operator/", "operator/a/b", "operator/.."} {
		_, err := Issue(dir, "", []string{name}, time.Hour)
		require.ErrorContains(t, err, "cannot be the name of a directory", name)
	}
}

// TestClientMayHaveNoCertificate, but the CA alone, which names the cluster.
func TestClientMayHaveNoCertificate(t *testing.T) {
	dir := t.TempDir()
	_, err := Issue(dir, "bees", []string{"n1"}, time.Hour)
	require.NoError(t, err)
	own, roots, cluster, err := LoadClient(dir)
	require.NoError(t, err)
	require.Nil(t, own)
	require.Equal(t, "bees", cluster)
	_, err = Verify([]*x509.Certificate{leaf(t, dir+"/n1")}, roots, x509.ExtKeyUsageServerAuth)
	require.NoError(t, err)
	_, _, _, err = LoadClient(t.TempDir())
	require.ErrorContains(t, err, "ca.crt: no such file")
}

// TestCAsChange: the file of CAs has two meanwhile, and the one with the key signs.
func TestCAsChange(t *testing.T) {
	old, next := filepath.Join(t.TempDir(), "old"), filepath.Join(t.TempDir(), "next")
	for _, dir := range []string{old, next} {
		_, err := Issue(dir, "bees", []string{"n1"}, time.Hour)
		require.NoError(t, err)
	}
	both, err := os.ReadFile(old + "/ca.crt")
	require.NoError(t, err)
	newest, err := os.ReadFile(next + "/ca.crt")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(next+"/ca.crt", append(both, newest...), 0o600))
	_, err = Issue(next, "", nil, time.Hour)
	require.NoError(t, err)
	leaf(t, next+"/n1")
	_, roots, err := Load(next + "/n1")
	require.NoError(t, err)
	of, _, err := Load(old + "/n1")
	require.NoError(t, err)
	_, err = of.Leaf.Verify(x509.VerifyOptions{Roots: roots})
	require.NoError(t, err, "members of both are taken")

	require.NoError(t, os.Rename(old+"/ca.key", next+"/ca.key"))
	require.NoError(t, os.WriteFile(next+"/ca.crt", newest, 0o600))
	_, err = Issue(next, "", nil, time.Hour)
	require.ErrorContains(t, err, "ca.key is not the key of a certificate in")
}

// TestACANobodyHasTheKeyOfIsNotReplaced: nodes may trust it.
func TestACANobodyHasTheKeyOfIsNotReplaced(t *testing.T) {
	dir := t.TempDir()
	_, err := Issue(dir, "bees", []string{"n1"}, time.Hour)
	require.NoError(t, err)
	before := leaf(t, dir+"/n1")
	require.NoError(t, os.Remove(dir+"/ca.key"))
	_, err = Issue(dir, "bees", []string{"n1"}, time.Hour)
	require.ErrorContains(t, err, "ca.key: no such file")
	require.Equal(t, before, leaf(t, dir+"/n1"))
}
