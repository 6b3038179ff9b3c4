package cluster

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/bmqelect/bmqelect/cluster/internal/store"
	"github.com/bmqelect/bmqelect/cluster/internal/testhook"
	"github.com/stretchr/testify/require"
)

// Start returns with its context although the disk hangs. The directory stays locked until the disk
// answers.
func TestAStartOnADiskThatHangsEndsWithItsContext(t *testing.T) {
	cfg := Config{
		Node: "a", Voters: []NodeID{"a"}, DataDir: t.TempDir(),
		GossipAddr: "127.0.0.1:0", MeshAddr: "127.0.0.1:0",
	}
	answers := make(chan struct{})
	hangs := testhook.With(t.Context(), testhook.Hooks{Disk: func(write func() error) error {
		<-answers
		return write()
	}})
	ctx, cancel := context.WithTimeout(hangs, 50*time.Millisecond)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := Start(ctx, cfg)
		ended <- err
	}()
	var err error
	select {
	case err = <-ended:
	case <-time.After(30 * time.Second):
	}
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "the disk or the network has not answered")
	_, err = Start(t.Context(), cfg)
	require.ErrorIs(t, err, store.ErrLocked, "the first start goes on")

	close(answers)
	require.Eventually(t, func() bool {
		n, err := Start(t.Context(), cfg)
		return err == nil && n.Close(context.Background()) == nil
	}, 30*time.Second, 20*time.Millisecond)
}

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
