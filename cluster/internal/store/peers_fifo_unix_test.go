//go:build unix

package store

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// A FIFO in place of the file blocks neither a start nor a write of the peers.
func TestPipesInPlaceOfTheCacheOfPeersHoldNobodyUp(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{peersFile, peersFile + ".new"} {
		require.NoError(t, syscall.Mkfifo(filepath.Join(dir, name), 0o600))
	}
	s, err := Open(dir, alice)
	require.NoError(t, err)
	require.Empty(t, s.Peers())
	require.NoError(t, s.SavePeers([]string{"b:7400"}))
	require.NoError(t, s.Close())
	require.Equal(t, []string{"b:7400"}, opened(t, dir).Peers(), "what was in the way is gone")
}
