package cluster

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster/internal/gossip"
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
