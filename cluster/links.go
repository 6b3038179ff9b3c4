package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/base/recording"
	"github.com/bmqelect/bmqelect/netmesh"
)

// meshHandler hands what the mesh reports to the driver. It may wait for room in the
// inbox, which holds up that one link.
type meshHandler struct{ n *Node }

var _ netmesh.Handler = meshHandler{}

func (h meshHandler) LinkUp(peer netmesh.PeerInfo) {
	h.n.log.Debug("link up", "peer", peer.Node, "boot", peer.Boot, "addr", peer.Remote)
	h.n.recordLink(recording.Record{
		Kind: recording.LinkUp, Peer: string(peer.Node), PeerBoot: peer.Boot,
		Identity: peer.Identity.String(),
	})
	if peer.Identities != nil {
		h.n.persister.note(func() error {
			return h.n.store.SaveIdentities(peer.Node, peer.Identities)
		})
	}
	h.n.post(event{do: func() {
		h.n.up[peer.Node] = peer.Meta
		h.n.quality.Up(peer.Node)
		h.n.noteProcess(&peer)
		h.n.heedReturn(peer.Node)
		h.n.stepAll(elector.LinkUp{Peer: peer.Node})
	}})
	wake(h.n.linked)
}

func (h meshHandler) LinkDown(peer NodeID, ev elector.Evidence) {
	h.n.recordLink(recording.Record{
		Kind: recording.LinkDown, Peer: string(peer), Why: ev.String(),
	})
	h.n.post(event{do: func() {
		delete(h.n.up, peer)
		delete(h.n.unentitled, peer)
		h.n.stepAll(elector.LinkDown{Peer: peer, Evidence: ev})
	}})
	h.n.log.Debug("link down", "peer", peer, "evidence", ev.String())
}

func (h meshHandler) Died(peer NodeID, proof elector.Proof) {
	h.n.recordLink(recording.Record{
		Kind: recording.Died, Peer: string(peer), Why: proof.String(),
	})
	h.n.post(event{do: func() { h.n.died(peer, proof) }})
	h.n.log.Debug("process proven dead", "peer", peer, "proof", proof.String())
}

func (h meshHandler) Received(peer NodeID, group string, m elector.Message) {
	h.n.post(event{from: peer, group: group, msg: m})
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

// noteProcess notes which process a new link leads to. It runs on the driver.
func (n *Node) noteProcess(peer *netmesh.PeerInfo) {
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
	for _, t := range slices.Clone(n.ticks) {
		if p.since == 0 || n.now() >= p.since.Add(t.g.promise) { // §6.9
			n.step(t.g, elector.Died{Peer: peer, Proof: proof})
		}
	}
}

// Forget makes this node take in the next process of another node's name, whatever
// its data directory: it is for a machine that is gone for good and whose end the
// network did not show. Without it, a new data directory under the old name is
// refused for as long as the old process may live.
//
// It fails, and changes nothing, if id is this node or no member, if there is a
// link to id, or if the last one was lost, or this node was started, a shorter time
// ago than the longest promise of its elections binds: lease x (1 + drift). Two processes
// of one name can vote twice, so call it on every node, and only when the old
// process is gone and its data directory is never used again.
func (n *Node) Forget(ctx context.Context, id NodeID) error {
	err := context.Cause(ctx)
	if err == nil {
		err = n.forget(ctx, id)
	}
	if err != nil {
		return fmt.Errorf("node %s forgets node %s: %w", n.cfg.Node, id, err)
	}
	return nil
}

func (n *Node) forget(ctx context.Context, id NodeID) error {
	if id == n.cfg.Node {
		return errors.New("that is this node")
	}
	known := func(m MemberStatus) bool { return m.Node == id }
	if !slices.ContainsFunc(n.memberStatus(), known) {
		return errors.New("no member has that name")
	}
	var promise time.Duration
	err := n.callWithin(ctx, func() {
		for _, g := range n.groups {
			promise = max(promise, g.promise)
		}
	})
	if err != nil {
		return err
	}
	if err := n.mesh.Forget(id, promise); err != nil {
		return err
	}
	n.diagnosis.Forget(id)
	return nil
}
