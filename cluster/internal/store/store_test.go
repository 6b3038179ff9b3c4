package store

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/bmqelect/bmqelect/lsn"
)

var alice = Owner{Cluster: "bees", Node: "alice"}

func TestMain(m *testing.M) {
	if dir := os.Getenv(crashDir); dir != "" {
		fmt.Fprintln(os.Stderr, writeUntilKilled(dir))
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

// opened opens dir for alice until the test ends.
func opened(t testing.TB, dir string) *Store {
	t.Helper()
	s, err := Open(dir, alice)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func TestStateOutlivesTheProcess(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "by", "open")
	s := opened(t, dir)
	require.Equal(t, uint64(1), s.Boot())
	require.NoError(t, s.Persist(map[string]lsn.Term{"a": 7, "b": lsn.MaxTerm}))
	require.NoError(t, s.SavePeers([]string{"127.0.0.1:1", "[::1]:2"}))
	identity := s.Identity()
	require.NoError(t, s.Close())

	s = opened(t, dir)
	require.Equal(t, identity, s.Identity())
	require.Equal(t, uint64(2), s.Boot())
	require.Equal(t, []string{"127.0.0.1:1", "[::1]:2"}, s.Peers())
	requireGroup(t, s, "a", 7)
	requireGroup(t, s, "b", lsn.MaxTerm)
}

func requireGroup(t *testing.T, s *Store, name string, want lsn.Term) {
	t.Helper()
	got, err := s.Group(name)
	require.NoError(t, err)
	require.Equal(t, want, got)
}

func TestOpeningAGroupWritesNothing(t *testing.T) {
	dir := t.TempDir()
	s := opened(t, dir)
	before, err := os.ReadFile(filepath.Join(dir, stateFile))
	require.NoError(t, err)
	requireGroup(t, s, "a", 0)
	after, err := os.ReadFile(filepath.Join(dir, stateFile))
	require.NoError(t, err)
	require.Equal(t, before, after)
}

func TestTermNeverGoesDown(t *testing.T) {
	s := opened(t, t.TempDir())
	require.NoError(t, s.Persist(map[string]lsn.Term{"a": 7}))
	require.NoError(t, s.Persist(map[string]lsn.Term{"a": 7}), "the same term is no step down")
	err := s.Persist(map[string]lsn.Term{"0": 1, "a": 6})
	require.ErrorContains(t, err, `group "a": term 6 is below the durable term 7`)
	require.NotErrorIs(t, err, ErrNotDurable)
	requireGroup(t, s, "a", 7)
	requireGroup(t, s, "0", 0)
	require.NoError(t, s.Persist(map[string]lsn.Term{"a": 8}),
		"a refused term is no failure of the disk")
}

func TestFilesAreForTheOwnerOnly(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	opened(t, dir)
	for name, mode := range map[string]os.FileMode{"": 0o700, stateFile: 0o600, lockFile: 0o600,
		markerFile: 0o600} {
		info, err := os.Stat(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Equal(t, mode, info.Mode().Perm(), name)
	}
}

// unsynced is a Disk that only saves the time of fsync.
func unsynced(write func() error) error { return write() }
