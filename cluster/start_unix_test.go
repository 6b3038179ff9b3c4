//go:build unix

package cluster

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/bmqelect/bmqelect/internal/store"
)

// A disk that does not answer: reading the state waits for ever, as a FIFO does to which
// nobody writes.
func TestAStartOnADiskThatHangsEndsWithItsContext(t *testing.T) {
	dir := t.TempDir()
	cfg := Config{Node: "a", Voters: []NodeID{"a"}, DataDir: dir, GossipAddr: "127.0.0.1:0", MeshAddr: "127.0.0.1:0"}
	state := filepath.Join(dir, "state.db")
	require.NoError(t, unix.Mkfifo(state, 0o600))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
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

	disk, err := os.OpenFile(state, os.O_WRONLY, 0)
	require.NoError(t, err)
	require.NoError(t, os.Remove(state))
	require.NoError(t, disk.Close()) // it answers: there is nothing to read
	require.Eventually(t, func() bool {
		n, err := Start(t.Context(), cfg)
		if err != nil {
			return false
		}
		return n.Close(context.Background()) == nil
	}, 30*time.Second, 20*time.Millisecond)
}
