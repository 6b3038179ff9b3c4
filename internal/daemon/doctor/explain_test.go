package doctor

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/store"
)

func TestAFailedStartIsExplained(t *testing.T) {
	t.Parallel()
	taken := open(t).Addr().String()
	start := func(c cluster.Config) error {
		c.Node, c.Voters = "a", []cluster.NodeID{"a"}
		if c.DataDir == "" {
			c.DataDir = filepath.Join(t.TempDir(), "data")
		}
		for _, addr := range []*string{&c.GossipAddr, &c.MeshAddr} {
			if *addr == "" {
				*addr = "127.0.0.1:0"
			}
		}
		_, err := cluster.Start(t.Context(), c)
		require.Error(t, err)
		explained := Explain(err, c)
		require.ErrorIs(t, explained, err)
		return explained
	}
	used := t.TempDir()
	ranAs(t, used, "a")
	others := t.TempDir()
	require.NoError(t, ranAs(t, others, "zoe").Close())

	for kind, c := range map[Kind]cluster.Config{
		AddressForeign: {MeshAddr: "192.0.2.7:7401"},
		DataDirInUse:   {DataDir: used},
		DataDirOwner:   {DataDir: others},
		// A file where a directory is to be, as a directory that may not be entered.
		DataDirUnusable: {DataDir: filepath.Join(used, "LOCK", "data")},
	} {
		require.ErrorContains(t, start(c), "; see docs/errors.md#"+string(kind))
	}
	for _, c := range []cluster.Config{{MeshAddr: taken}, {GossipAddr: taken}} {
		err := start(c)
		require.ErrorContains(t, err, "; see docs/errors.md#port-taken")
		if runtime.GOOS == "linux" {
			require.ErrorContains(t, err, "the port is held by process ")
		}
	}
}

func TestErrorsThatAreKnownAreExplained(t *testing.T) {
	t.Parallel()
	var own cluster.Config
	for want, err := range map[Kind]error{
		DataDirDamaged:  fmt.Errorf("x: %w", store.ErrCorrupt),
		DataDirUnusable: store.ErrNotDurable,
	} {
		require.EqualError(t, Explain(err, own), err.Error()+"; see "+See(want))
	}
	unknown := errors.New("something else")
	require.Equal(t, unknown, Explain(unknown, own))
	require.Equal(t, unknown, Explain(unknown, cluster.Config{Node: "a", DataDir: t.TempDir()}))
	require.Empty(t, heldBy(&net.OpError{}), "an error without an address has no holder")
}
