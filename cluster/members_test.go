package cluster

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/bmqelect/bmqelect/cluster/internal/gossip"
	"github.com/stretchr/testify/require"
)

func TestAMeshAddressWithoutHostIsThatOfTheGossip(t *testing.T) {
	for _, c := range []struct{ mesh, gossip, want string }{
		{"192.0.2.1:7401", "192.0.2.9:7400", "192.0.2.1:7401"},
		{":7401", "192.0.2.9:7400", "192.0.2.9:7401"},
		{":7401", "[2001:db8::1]:7400", "[2001:db8::1]:7401"},
		{"mesh.example:7401", "192.0.2.9:7400", "mesh.example:7401"},
		{"nonsense", "192.0.2.9:7400", "nonsense"},
	} {
		m := gossip.Member{GossipAddr: c.gossip, Meta: gossip.Meta{MeshAddr: c.mesh}}
		require.Equal(t, c.want, meshAddrOf(m))
	}
}

// The join addresses are real, so the errors are those of the resolver and the kernel.
func TestWhyNoOtherMemberIsFound(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	own := ln.Addr().String()
	require.NoError(t, ln.Close())
	start := func(voters []NodeID, join ...string) *Node {
		n, err := Start(t.Context(), Config{
			Node: "a", Voters: voters, DataDir: t.TempDir(), GossipAddr: own, MeshAddr: "127.0.0.1:0",
			Join: join,
		})
		require.NoError(t, err)
		require.Eventually(t, func() bool { return len(n.gossip.Joined()) == len(join) },
			30*time.Second, 10*time.Millisecond)
		return n
	}
	for want, c := range map[string]struct {
		voters []NodeID
		join   []string
	}{
		"": {[]NodeID{"a"}, nil},
		"has found no other member: it has no address to join": {[]NodeID{"a", "b"}, nil},
		"has found no other member: the addresses to join (" + own + ") lead only to this node itself": {
			[]NodeID{"a", "b"}, []string{own}},
		"nowhere.invalid:7400: resolve host of \"nowhere.invalid:7400\": lookup nowhere.invalid": {
			[]NodeID{"a"}, []string{own, "nowhere.invalid:7400"}},
		"127.0.0.1:1: exchange state with 127.0.0.1:1: connect: connection refused": {
			[]NodeID{"a", "b"}, []string{"127.0.0.1:1"}},
	} {
		n := start(c.voters, c.join...)
		require.False(t, n.hasMet())
		if want == "" {
			require.Empty(t, n.whyAlone())
		}
		require.Contains(t, n.whyAlone(), want)
		require.NoError(t, n.Close(context.Background()))
	}
}
