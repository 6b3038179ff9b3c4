package ask

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
)

// configOf is that of a node on ports that the system picks.
func configOf(t *testing.T, node cluster.NodeID) cluster.Config {
	return cluster.Config{
		Node: node, Voters: []cluster.NodeID{node}, DataDir: filepath.Join(t.TempDir(), "data"),
		GossipAddr: "127.0.0.1:0", MeshAddr: "127.0.0.1:0",
	}
}

func TestAFailedStartIsExplained(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	used, others := configOf(t, "a"), configOf(t, "zoe")
	node, err := cluster.Start(t.Context(), used)
	require.NoError(t, err)
	defer node.Close(t.Context())
	zoe, err := cluster.Start(t.Context(), others)
	require.NoError(t, err)
	require.NoError(t, zoe.Close(t.Context()))

	for kind, change := range map[Kind]func(*cluster.Config){
		addressForeign: func(c *cluster.Config) { c.MeshAddr, c.Insecure = "192.0.2.7:7401", true },
		dataDirInUse:   func(c *cluster.Config) { c.DataDir = used.DataDir },
		dataDirOwner:   func(c *cluster.Config) { c.DataDir = others.DataDir },
		// A file where a directory must be, as a directory that may not be entered.
		dataDirUnusable: func(c *cluster.Config) {
			c.DataDir = filepath.Join(used.DataDir, "LOCK",
				"data")
		},
		portTaken: func(c *cluster.Config) { c.GossipAddr = taken.Addr().String() },
	} {
		c := configOf(t, "a")
		change(&c)
		_, err := cluster.Start(t.Context(), c)
		require.Error(t, err)
		explained := Explain(err)
		require.ErrorIs(t, explained, err)
		require.ErrorContains(t, explained, "; "+catalogue[kind].fix+"; see docs/errors.md#"+string(kind))
	}
}

func TestErrorsThatAreKnownAreExplained(t *testing.T) {
	t.Parallel()
	require.EqualError(t, Explain(fmt.Errorf("x: %w", cluster.ErrDirNewer)),
		"x: written by a newer program; start it with the release that wrote it, or a newer one; "+
			"keep it; see docs/errors.md#data-dir-newer")
	require.EqualError(t, Explain(fmt.Errorf("x: %w", cluster.ErrDirDamaged)),
		"x: durable state is corrupt; never restore a copy; see docs/errors.md#data-dir-damaged")
	unknown := errors.New("something else")
	require.Equal(t, unknown, Explain(unknown))
}

// TestAMistypedDirectoryOfCertificatesIsNoReasonToRenewThem.
func TestAMistypedDirectoryOfCertificatesIsNoReasonToRenewThem(t *testing.T) {
	t.Parallel()
	c := configOf(t, "a")
	c.TLS = cluster.TLSDir("/nowhere/tls")
	_, err := cluster.Start(t.Context(), c)
	err = Explain(err)
	require.ErrorContains(t, err, "/nowhere/tls/ca.crt: no such file or directory")
	require.ErrorContains(t, err, "tls-dir must name the directory that 'bmqnode certs' made")
	require.NotContains(t, err.Error(), "renew")
}
