package store

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPeersThatCannotBeWrittenHarmNothing(t *testing.T) {
	dir := t.TempDir()
	s := opened(t, dir)
	require.NoError(t, s.SavePeers([]string{"one"}))
	obstacle := filepath.Join(dir, peersFile+".new")
	require.NoError(t, os.Mkdir(obstacle, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(obstacle, "x"), nil, 0o600))
	require.ErrorContains(t, s.SavePeers([]string{"two"}), "save the addresses of peers")
	require.Equal(t, []string{"one"}, s.Peers())
	require.NoError(t, s.Persist(exact{"a": 5}.terms()))
	require.NoError(t, os.RemoveAll(obstacle))
	require.NoError(t, s.SavePeers([]string{"two"}))
	require.NoError(t, s.Close())
	require.Equal(t, []string{"two"}, opened(t, dir).Peers())
}

func TestDamagedPeersAreIgnored(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, opened(t, dir).Close())
	for _, text := range []string{"", "[", `["one",`, `{"one": 1}`, "null", "\x00\xff"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, peersFile), []byte(text), 0o600))
		s := opened(t, dir)
		require.Empty(t, s.Peers(), "%q", text)
		require.NoError(t, s.Close())
	}
}

func TestPeersAreBounded(t *testing.T) {
	dir := t.TempDir()
	s := opened(t, dir)
	var many []string
	for i := range 2 * MaxPeers {
		many = append(many, strconv.Itoa(i))
	}
	require.NoError(t, s.SavePeers(many))
	require.Equal(t, many[:MaxPeers], s.Peers())
}
