package cluster

import (
	"slices"

	"github.com/google/uuid"

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
		i.n.meet(&peer)
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
	i.n.post(event{do: func() { i.n.died(peer, proof) }})
}

func (i inlet) Received(peer NodeID, group string, m elector.Message) {
	i.n.post(event{from: peer, group: group, msg: m})
}

// process is the newest process of a voter's name that this node had a link to.
type process struct {
	identity uuid.UUID
	boot     uint64
	dead     bool // it is proven dead
	// since is when a process took the name over from one that was not proven dead;
	// 0 if none did.
	since elector.Time
}

// meet takes note of which process a new link leads to. It runs on the driver.
func (n *Node) meet(peer *netmesh.PeerInfo) {
	if !slices.Contains(n.cfg.Voters, peer.Node) {
		return // nobody promises anything to it
	}
	last, known := n.processes[peer.Node]
	now := process{identity: peer.Identity, boot: peer.Boot, since: last.since}
	another := now.identity != last.identity || now.boot != last.boot
	if known && another && !last.dead {
		now.since = n.now()
	}
	n.processes[peer.Node] = now
}

// died tells the elections that a process is proven dead. A promise is made to a name:
// where an earlier process of that name may still hold it, because this one ran on a
// copy of its data directory, this one's death ends nothing. It runs on the driver.
func (n *Node) died(peer NodeID, proof elector.Proof) {
	p, known := n.processes[peer]
	if known {
		p.dead = true
		n.processes[peer] = p
	}
	for _, g := range n.groups {
		if p.since == 0 || n.now() >= p.since.Add(g.promise) { // §6.9
			n.step(g, elector.Died{Peer: peer, Proof: proof})
		}
	}
}
