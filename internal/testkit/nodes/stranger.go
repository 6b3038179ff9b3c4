package nodes

import (
	"context"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/elector/pair"
	"github.com/bmqelect/bmqelect/internal/daemon/procs"
	"github.com/bmqelect/bmqelect/netmesh"
)

// Silent is a member of a mesh that the test plays. It hears and says nothing.
type Silent struct{}

// LinkUp implements netmesh.Handler.
func (Silent) LinkUp(netmesh.PeerInfo) {}

// LinkDown implements netmesh.Handler.
func (Silent) LinkDown(elector.NodeID, elector.Evidence) {}

// Died implements netmesh.Handler.
func (Silent) Died(elector.NodeID, elector.Proof) {}

// Received implements netmesh.Handler.
func (Silent) Received(elector.NodeID, string, elector.Message) {}

// Noted implements netmesh.Handler.
func (Silent) Noted(elector.NodeID, netmesh.Note)                      {}
func (Silent) Changed(elector.NodeID, uint64, []pair.Change)           {}
func (Silent) Beaten(elector.NodeID, uint64, pair.Beat, time.Duration) {}
func (Silent) Acked(elector.NodeID, uint64, pair.Ack)                  {}

// Intrude lets a member that the test plays connect to a node until the test ends. Its name is
// "stranger" if it has none.
func Intrude(t testing.TB, at *procs.Node, as netmesh.Config, h netmesh.Handler) *netmesh.Mesh {
	if as.Node == "" {
		as.Node = "stranger"
	}
	as.Identity, as.Boot, as.Bind = uuid.New(), 1, "127.0.0.1:0"
	m, err := netmesh.Listen(as, h)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), Patience)
		defer cancel()
		require.NoError(t, m.Close(ctx))
	})
	m.AddPeer(elector.NodeID(at.Name), at.MeshAddr)
	return m
}

// OwnAddress is an address of this machine off loopback. What it sends there stays inside.
func OwnAddress(t testing.TB) string {
	addrs, err := net.InterfaceAddrs()
	require.NoError(t, err)
	for _, a := range addrs {
		if a, ok := a.(*net.IPNet); ok && a.IP.To4() != nil && a.IP.IsGlobalUnicast() {
			return a.IP.String()
		}
	}
	t.Skip("this machine has no IPv4 address off loopback")
	return ""
}

// Publish lets the admin side of a node that does not run listen on all addresses, appends lines
// to its file, and returns the address at host, which others are told.
func Publish(t testing.TB, n *procs.Node, host string, more ...string) (addr string) {
	_, port, _ := net.SplitHostPort(n.AdminAddr)
	addr = net.JoinHostPort(host, port)
	Edit(t, n, func(text string) string {
		return strings.Replace(text, n.AdminAddr, "0.0.0.0:"+port, 1)
	})
	Configure(t, n, append(more, "advertise-admin: "+addr)...)
	return addr
}

// ShortDir is a directory for sockets, whose paths are bounded.
func ShortDir(t testing.TB) string {
	dir, err := os.MkdirTemp("", "bmq")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}
