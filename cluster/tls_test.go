package cluster_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/clustertest"
	"github.com/bmqelect/bmqelect/cluster/findings"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/base/certs"
)

// issue makes certificates of three nodes in dir, or renews them.
func issue(t *testing.T, dir string, valid time.Duration) {
	t.Helper()
	_, err := certs.Issue(dir, cluster.DefaultCluster, []string{"a", "b", "c"}, valid)
	require.NoError(t, err)
}

// runWithTLS runs f with a cluster of three, and the directory of their certificates.
func runWithTLS(
	t *testing.T, valid time.Duration, f func(t *testing.T, c *clustertest.Cluster, dir string),
) {
	dir := filepath.Join(t.TempDir(), "pki")
	clustertest.Run(t, []cluster.NodeID{"a", "b", "c"},
		func(t *testing.T, c *clustertest.Cluster) { f(t, c, dir) },
		clustertest.Configure(func(cfg *cluster.Config) {
			if _, err := os.Stat(dir); err != nil {
				issue(t, dir, valid) // in virtual time
			}
			cfg.TLS = cluster.TLSDir(filepath.Join(dir, string(cfg.Node)))
		}))
}

// TestCrashWithTLSIsProvenAndTakesNoTime, as without.
func TestCrashWithTLSIsProvenAndTakesNoTime(t *testing.T) {
	runWithTLS(t, time.Hour, func(t *testing.T, c *clustertest.Cluster, _ string) {
		for range 5 {
			old, began := c.AwaitLeader(), time.Now()
			c.Crash(old)
			time.Sleep(10 * time.Millisecond)
			for _, id := range c.Running() {
				why := c.Node(id).Status().Groups[0].Explanation
				require.NotContains(t, why, "the lease of "+string(old), "its death is proven")
			}
			require.NotEqual(t, old, c.AwaitLeader())
			require.Less(t, time.Since(began), 3*elector.Article().MaxRandomWait)
			c.Restart(old)
			time.Sleep(5 * time.Second)
		}
	})
}

// TestCertificatesEndAndAreRenewed without a change of the leader.
func TestCertificatesEndAndAreRenewed(t *testing.T) {
	const valid = 50 * time.Minute
	runWithTLS(t, valid, func(t *testing.T, c *clustertest.Cluster, dir string) {
		leader, began := c.AwaitLeader(), time.Now()
		find := func() (all []findings.Finding) {
			for _, id := range c.Running() {
				all = append(all, c.Node(id).Status().Findings...)
			}
			return all
		}
		end := func() time.Time { return c.Node("b").Status().CertificateEnd }
		require.WithinDuration(t, began.Add(valid), end(), time.Minute)
		time.Sleep(valid - 15*time.Minute)
		require.Empty(t, find())
		time.Sleep(5 * time.Minute)
		require.Len(t, find(), 3, "less than a tenth of 110 minutes is left: it was backdated by an hour")
		require.Equal(t, findings.Certificate, find()[0].Kind)
		require.Contains(t, find()[0].Detail, `the certificate of node "a" ends at 2000-01-01T00:50:`)

		broken := filepath.Join(dir, "b", "tls.key")
		require.NoError(t, os.WriteFile(broken, []byte("nonsense"), 0o600))
		require.ErrorIs(t, c.Node("b").ReloadTLS(), cluster.ErrCredentials)
		require.Contains(t, find()[1].Detail, `node "b" goes on with the certificate that ends at 2000-`)
		require.Contains(t, find()[1].Detail, broken)

		time.Sleep(valid)
		require.Equal(t, leader, c.Leader(), "links outlive certificates")
		require.Contains(t, find()[0].Detail, "certificate has expired")
		issue(t, dir, valid)
		time.Sleep(time.Minute)
		require.Empty(t, find())
		require.WithinDuration(t, time.Now().Add(valid), end(), 2*time.Minute)
		require.Equal(t, leader, c.Leader())
		c.Crash(leader)
		c.AwaitLeader()
		c.Restart(leader)
		time.Sleep(time.Minute)
		require.Empty(t, find(), "new links use the new ones")
	})
}

// TestOneNodeWithoutTLSIsFound by all.
func TestOneNodeWithoutTLSIsFound(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pki")
	clustertest.Run(t, []cluster.NodeID{"a", "b", "c"}, func(t *testing.T, c *clustertest.Cluster) {
		leader := c.AwaitLeader()
		require.NotEqual(t, cluster.NodeID("c"), leader)
		time.Sleep(time.Minute)
		for _, id := range c.Running() {
			found := []cluster.NodeID{}
			for _, f := range c.Node(id).Status().Findings {
				if f.Kind == findings.TLS {
					found = append(found, f.Peer)
				}
			}
			want := map[bool][]cluster.NodeID{false: {"c"}, true: {"a", "b"}}[id == "c"]
			require.Equal(t, want, found, id)
		}
	}, clustertest.Configure(func(cfg *cluster.Config) {
		if _, err := os.Stat(dir); err != nil {
			issue(t, dir, time.Hour)
		}
		if cfg.Node != "c" {
			cfg.TLS = cluster.TLSDir(filepath.Join(dir, string(cfg.Node)))
		}
	}))
}

// TestStartWithoutUsableCertificateSaysWhatIsWrong, and what would be right.
func TestStartWithoutUsableCertificateSaysWhatIsWrong(t *testing.T) {
	dir := t.TempDir()
	issue(t, dir, time.Hour)
	own := func(name string) string { return filepath.Join(dir, "a", name) }
	for name, c := range map[string]struct {
		spoil func() error
		want  string
	}{
		"no directory": {func() error { return os.Rename(dir+"/a", dir+"/z") },
			"a/ca.crt: no such file"},
		"key of another": {func() error { return os.Rename(dir+"/b/tls.key", own("tls.key")) },
			"tls.key: tls: private key does not match"},
		"key for all to read": {func() error { return os.Chmod(own("tls.key"), 0o644) },
			"tls.key has the permissions 0644: want 0600, or"},
		"no key": {func() error { return os.WriteFile(own("tls.key"), []byte("x"), 0o600) },
			"failed to find any PEM data"},
		"key as CA": {func() error { return os.Rename(own("tls.key"), own("ca.crt")) },
			`ca.crt: a PEM block is "PRIVATE KEY", want CERTIFICATE`},
		"empty CA": {func() error { return os.Truncate(own("ca.crt"), 0) },
			"ca.crt has no certificate; want PEM"},
		"another node": {func() error { return os.Rename(dir+"/c/tls.crt", own("tls.crt")) },
			"tls.key: tls: private key does not match"},
		"short gossip key": {func() error {
			return os.WriteFile(own("gossip.key"), []byte("c2hvcnQ="), 0o600)
		},
			`gossip.key: line 1: it is neither 32 bytes in base64 nor the word "plain"`},
		"another node's all": {func() error {
			return errors.Join(os.RemoveAll(dir+"/a"), os.Rename(dir+"/c", dir+"/a"))
		}, `for ["bmqelect://bmqelect/c" "c"], but must be for bmqelect://bmqelect/a`},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, os.RemoveAll(dir+"/a"))
			issue(t, dir, time.Hour)
			cfg := cluster.Config{
				Node: "a", Voters: []cluster.NodeID{"a"}, DataDir: t.TempDir(),
				GossipAddr: "127.0.0.1:0", MeshAddr: "127.0.0.1:0", TLS: cluster.TLSDir(dir + "/a"),
			}
			require.NoError(t, cluster.CheckTLS(cfg))
			require.NoError(t, c.spoil())
			_, err := cluster.Start(t.Context(), cfg)
			require.ErrorIs(t, err, cluster.ErrCredentials)
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, cluster.CheckTLS(cfg), c.want)
		})
	}
}

// TestAListOfNamesThatIsGoneStillCounts, until it is written again.
func TestAListOfNamesThatIsGoneStillCounts(t *testing.T) {
	runWithTLS(t, 24*time.Hour, func(t *testing.T, c *clustertest.Cluster, dir string) {
		c.AwaitLeader()
		link := func() string { return c.Node("a").Status().Members[1].Link }
		list := filepath.Join(dir, "a", "names")
		require.NoError(t, os.WriteFile(list, []byte("a\nb\n"), 0o600))
		time.Sleep(time.Minute)
		require.NotEqual(t, "up", link(), "c is not listed")
		require.NoError(t, os.Remove(list))
		time.Sleep(time.Minute)
		require.NotEqual(t, "up", link(), "c is still not let in")
		found := c.Node("a").Status().Findings
		require.True(t, slices.ContainsFunc(found, func(f findings.Finding) bool {
			return f.Kind == findings.Certificate && strings.Contains(f.Detail, "there is no list of names")
		}), found)
		require.NoError(t, os.WriteFile(list, []byte("a b c"), 0o600))
		time.Sleep(time.Minute)
		require.Equal(t, "up", link())
		require.Empty(t, c.Node("a").Status().Findings)
	})
}

// Package credentials has the tests of reloads. This one shows that gossip and status follow them.
func TestReloadedKeysAreThoseOfGossip(t *testing.T) {
	dir := t.TempDir()
	issue(t, dir, 24*365*time.Hour)
	file := filepath.Join(dir, "a", "gossip.key")
	node, err := cluster.Start(t.Context(), cluster.Config{
		Node: "a", Voters: []cluster.NodeID{"a"}, DataDir: t.TempDir(),
		GossipAddr: "127.0.0.1:0", MeshAddr: "127.0.0.1:0",
		TLS: cluster.TLSDir(filepath.Join(dir, "a")),
	})
	require.NoError(t, err)
	defer func() { require.NoError(t, node.Close(context.Background())) }()
	require.NoError(t, os.Remove(file))
	require.ErrorContains(t, node.ReloadTLS(), "write the word plain to stop encrypting")
	status := node.Status()
	require.Equal(t, "required", status.GossipEncryption)
	require.Len(t, status.Findings, 1)
	require.Equal(t, findings.Certificate, status.Findings[0].Kind)
	require.Contains(t, status.Findings[0].Detail, "gossip.key")
	require.NoError(t, os.WriteFile(file, []byte("plain\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a", "accept-plain"), nil, 0o600))
	require.NoError(t, node.ReloadTLS())
	status = node.Status()
	require.Equal(t, "none", status.GossipEncryption)
	require.True(t, status.AcceptsPlain)
	require.Positive(t, status.AcceptsPlainFor)
}
