package cluster

import (
	"maps"
	"net"
	"slices"

	"github.com/bmqelect/bmqelect/cluster/internal/gossip"
)

// join gives the mesh its peers: those that are configured, or those that gossip finds.
func (n *Node) join() error {
	peers := n.cfg.Peers
	if n.hooks.Peers != nil {
		peers = n.hooks.Peers
	}
	if peers != nil {
		for _, id := range slices.Sorted(maps.Keys(peers)) {
			if id != n.cfg.Node {
				n.mesh.AddPeer(id, peers[id])
			}
		}
		return nil
	}
	g, err := gossip.Start(n.gossipConfig())
	n.gossip = g
	return err
}

func (n *Node) gossipConfig() gossip.Config {
	c := gossip.Config{
		Cluster: n.cfg.Cluster, Node: n.cfg.Node,
		Bind: n.cfg.GossipAddr, Advertise: n.cfg.AdvertiseGossip,
		Join: n.cfg.Join, KnownPeers: n.store.Peers(), Voter: n.loop.IsVoter,
		Logger: n.log.Named("gossip"), OnChange: n.onMember, Save: n.store.SavePeers,
		Keys: n.credentials.Gossip(),
		Meta: gossip.Meta{
			MeshAddr: n.advertisedMesh(), AdminAddr: n.cfg.AdminAddr, Version: n.cfg.Version,
			Voter: slices.Contains(n.cfg.Voters, n.cfg.Node),
		},
	}
	if n.cfg.Faults != nil {
		c.Blocked = n.cfg.Faults.Blocks
	}
	return c
}

// advertisedMesh is the address that others dial. If the mesh listens on every address it is only a
// port: the others put the host of this node's gossip before it.
func (n *Node) advertisedMesh() string {
	if n.cfg.AdvertiseMesh != "" {
		return n.cfg.AdvertiseMesh
	}
	addr := n.mesh.Addr().String()
	host, port, err := net.SplitHostPort(addr)
	if ip := net.ParseIP(host); err == nil && ip != nil && ip.IsUnspecified() {
		return net.JoinHostPort("", port)
	}
	return addr
}

// meshAddrOf is the address at which to dial a member's mesh.
func meshAddrOf(m gossip.Member) string {
	host, port, err := net.SplitHostPort(m.MeshAddr)
	if err != nil || host != "" {
		return m.MeshAddr
	}
	if host, _, err = net.SplitHostPort(m.GossipAddr); err != nil {
		return m.MeshAddr
	}
	return net.JoinHostPort(host, port)
}

// onMember is called by gossip, one change at a time. It ignores that a voter seems to have failed:
// the mesh dials on.
func (n *Node) onMember(m gossip.Member) {
	switch {
	case m.State == gossip.StateAlive:
		n.mesh.AddPeer(m.Node, meshAddrOf(m))
	case !n.loop.IsVoter(m.Node):
		// Forget an observer that left or died: otherwise names that change every
		// day fill the mesh. One that only seemed to be dead joins again.
		n.mesh.RemovePeer(m.Node)
	}
}

// known are the others as gossip knows them.
func (n *Node) known() []gossip.Member {
	if n.gossip == nil {
		return nil
	}
	return n.gossip.Members()
}
