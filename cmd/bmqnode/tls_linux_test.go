package main_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/internal/testkit/nodes"
)

// No key can be read by other users, and none is shown.
func TestCertificateCommandLeavesNoKeyOpen(t *testing.T) {
	t.Parallel()
	pki := filepath.Join(t.TempDir(), "pki")
	out, errs, code := nodes.Run(t, "certs", "--dir", pki, "--cluster", "bees", "n1")
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
		_, errs, code = nodes.Run(t, append([]string{"certs"}, args...)...)
		require.NotZero(t, code, args)
		require.Contains(t, errs, want)
	}
}
