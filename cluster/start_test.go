package cluster

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster/internal/store"
	"github.com/bmqelect/bmqelect/cluster/internal/testhook"
)

// A disk that does not answer ends no start, and the directory stays held until it has.
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
