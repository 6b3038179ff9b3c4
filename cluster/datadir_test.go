package cluster

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster/internal/store"
)

func TestADataDirectoryIsCheckedWithoutAStart(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	own := store.Owner{Cluster: DefaultCluster, Node: "a"}
	free, err := store.Open(path("free"), own)
	require.NoError(t, err)
	require.NoError(t, free.Close())
	boot := free.Boot()
	used, err := store.Open(path("used"), own)
	require.NoError(t, err)
	defer used.Close()
	other, err := store.Open(path("other"), store.Owner{Cluster: DefaultCluster, Node: "b"})
	require.NoError(t, err)
	require.NoError(t, other.Close())
	lost, err := store.Open(path("lost"), own)
	require.NoError(t, err)
	require.NoError(t, lost.Close())
	require.NoError(t, os.Remove(filepath.Join(path("lost"), "state.db")))
	require.NoError(t, os.WriteFile(path("file"), nil, 0o600))

	for name, want := range map[string]error{
		"free": nil, "new": nil, "deep/new": nil,
		"used": ErrDirInUse, "other": ErrDirOwner, "lost": ErrDirDamaged, "file": ErrNotDurable,
		"file/new": ErrNotDurable,
	} {
		err := CheckDataDir(Config{Node: "a", DataDir: path(name)})
		require.ErrorIs(t, err, want, name)
	}
	require.NoDirExists(t, path("new"), "it makes nothing")
	require.NoDirExists(t, path("deep"))
	free, err = store.Open(path("free"), own)
	require.NoError(t, err)
	require.Equal(t, boot+1, free.Boot(), "a check is no start")
	require.NoError(t, free.Close())
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 5, "it leaves nothing")
}
