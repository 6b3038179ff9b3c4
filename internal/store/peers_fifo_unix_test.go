//go:build unix

package store

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// A start waits for nobody at the other end of a pipe, and neither does the cache.
func TestPipesInPlaceOfTheCacheOfPeersHoldNobodyUp(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{peersFile, peersFile + ".new"} {
		require.NoError(t, syscall.Mkfifo(filepath.Join(dir, name), 0o600))
	}
	s, err := Open(dir, Owner{Cluster: "c", Node: "a"})
	require.NoError(t, err)
	require.Empty(t, s.Peers())
	require.Error(t, s.SavePeers([]string{"b:7400"}))
	require.NoError(t, s.SavePeers([]string{"b:7400"}), "what was in the way is gone")
	require.NoError(t, s.Close())
}
