package cluster_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/testkit"
)

// unixNetwork is a network of a program's own: "a:1" is the Unix socket a of a directory.
type unixNetwork struct {
	dir   string
	dials atomic.Int64
}

func (u *unixNetwork) path(addr string) string {
	host, _, _ := strings.Cut(addr, ":")
	return filepath.Join(u.dir, host)
}

func (u *unixNetwork) Listen(addr string) (net.Listener, error) {
	return net.Listen("unix", u.path(addr))
}

func (u *unixNetwork) Dial(ctx context.Context, addr string) (net.Conn, error) {
	u.dials.Add(1)
	return new(net.Dialer).DialContext(ctx, "unix", u.path(addr))
}

// TestMembersMeetOverANetworkOfTheProgram by their addresses alone: real nodes without gossip.
func TestMembersMeetOverANetworkOfTheProgram(t *testing.T) {
	dir, err := os.MkdirTemp("", "u") // the path of a socket must be short
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	overlay := &unixNetwork{dir: dir}
	peers := map[cluster.NodeID]string{"a": "a:1", "b": "b:1", "c": "c:1"}
	var nodes []*cluster.Node
	for _, id := range three {
		n, err := cluster.Start(t.Context(), cluster.Config{
			Node: id, Voters: three, DataDir: t.TempDir(), Insecure: true,
			Network: overlay, MeshAddr: peers[id], Peers: peers,
			Election: cluster.ElectionConfig{Timing: elector.LAN()},
		})
		require.NoError(t, err)
		t.Cleanup(func() { n.Close(context.Background()) })
		nodes = append(nodes, n)
	}
	leader := func() (l *cluster.Node) {
		require.Eventually(t, func() bool {
			for _, n := range nodes {
				if n.IsLeader() && len(n.Status().Groups[0].Supporters) == len(nodes) {
					l = n
				}
			}
			return l != nil
		}, testkit.Limit(30*time.Second), 5*time.Millisecond)
		return l
	}
	first := leader()
	require.Positive(t, overlay.dials.Load())
	require.Eventually(t, func() bool { // once acknowledgements say that the others may lead
		return first.Transfer(t.Context(), "") == nil
	}, testkit.Limit(30*time.Second), 5*time.Millisecond)
	require.NotSame(t, first, leader())
	require.Empty(t, first.Status().GossipAddr)
	require.Equal(t, "off: nobody vouches for the network, which is the program's own",
		first.Status().DeathProof)
}

// TestADeathIsProvenWhereSomebodyVouches: members must agree on it, and the status shows it.
func TestADeathIsProvenWhereSomebodyVouches(t *testing.T) {
	peers := map[cluster.NodeID]string{"b": "192.0.2.2:7401"}
	own := func(c *cluster.Config) { c.Peers, c.Network = peers, &unixNetwork{} }
	for name, c := range map[string]struct {
		edit func(*cluster.Config)
		off  string
	}{
		"TCP and gossip": {func(*cluster.Config) {}, "false"},
		"own network":    {own, "true"},
		"addresses":      {func(c *cluster.Config) { c.Peers = peers }, "true"},
		"vouched for":    {func(c *cluster.Config) { own(c); c.VouchForNetwork = true }, "false"},
		"switched off":   {func(c *cluster.Config) { c.VouchForNetwork, c.NoDeathProof = true, true }, "true"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := cluster.Config{Node: "a", Voters: []cluster.NodeID{"a", "b"}, DataDir: t.TempDir()}
			c.edit(&cfg)
			require.NoError(t, cfg.Validate())
			require.Equal(t, c.off, cfg.Agreed()["no-death-proof"])
		})
	}
}

// TestMembersByAddressAreChecked names what is wrong.
func TestMembersByAddressAreChecked(t *testing.T) {
	err := cluster.Config{
		Node: "a", Voters: []cluster.NodeID{"a"}, DataDir: t.TempDir(), Join: []string{"127.0.0.1:7400"},
		Peers: map[cluster.NodeID]string{"b": "nowhere", "c d": "192.0.2.2:7401"},
	}.Validate()
	require.ErrorContains(t, err, "Join")
	require.ErrorContains(t, err, "empty beside Peers, with which there is no gossip")
	require.ErrorContains(t, err, `Peers[b]`)
	require.ErrorContains(t, err, `names of nodes`)
	err = cluster.Config{
		Node: "a", Voters: []cluster.NodeID{"a"}, DataDir: t.TempDir(), Network: &unixNetwork{},
	}.Validate()
	require.ErrorContains(t, err, "set beside Network, which gossip does not use")
}
