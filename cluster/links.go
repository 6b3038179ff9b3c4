package cluster

import (
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/netmesh"
)

// inlet hands what the mesh reports to the driver. It may wait for room in the
// inbox, which holds up that one link.
type inlet struct{ n *Node }

var _ netmesh.Handler = inlet{}

func (i inlet) LinkUp(peer netmesh.PeerInfo) {
	i.n.log.Debug("link up", "peer", peer.Node, "boot", peer.Boot, "addr", peer.Remote)
	i.n.post(event{do: func() {
		i.n.up[peer.Node] = true
		i.n.heedReturn(peer.Node)
		i.n.stepAll(elector.LinkUp{Peer: peer.Node})
	}})
}

func (i inlet) LinkDown(peer NodeID, ev elector.Evidence) {
	i.n.log.Debug("link down", "peer", peer, "evidence", ev.String())
	i.n.post(event{do: func() {
		delete(i.n.up, peer)
		i.n.stepAll(elector.LinkDown{Peer: peer, Evidence: ev})
	}})
}

func (i inlet) Died(peer NodeID, proof elector.Proof) {
	i.n.log.Debug("process proven dead", "peer", peer, "proof", proof.String())
	i.n.post(event{do: func() { i.n.stepAll(elector.Died{Peer: peer, Proof: proof}) }})
}

func (i inlet) Received(peer NodeID, group string, m elector.Message) {
	i.n.post(event{from: peer, group: group, msg: m})
}
