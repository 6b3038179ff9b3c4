package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/base/recording"
	"github.com/bmqelect/bmqelect/netmesh"
)

// meshHandler records what the mesh reports, and hands it to the loop. It may wait for room
// there, which holds up that one link.
type meshHandler struct{ n *Node }

var _ netmesh.Handler = meshHandler{}

func (h meshHandler) LinkUp(peer netmesh.PeerInfo) {
	h.n.log.Debug("link up", "peer", peer.Node, "boot", peer.Boot, "addr", peer.Remote)
	h.n.recorder.Record(recording.Record{
		Kind: recording.LinkUp, Peer: string(peer.Node), PeerBoot: peer.Boot,
		Identity: peer.Identity.String(), Faults: h.n.faults(),
	})
	h.n.loop.LinkUp(peer)
	wake(h.n.linked)
}

func (h meshHandler) LinkDown(peer NodeID, ev elector.Evidence) {
	h.n.recorder.Record(recording.Record{
		Kind: recording.LinkDown, Peer: string(peer), Why: ev.String(), Faults: h.n.faults(),
	})
	h.n.loop.LinkDown(peer, ev)
	h.n.log.Debug("link down", "peer", peer, "evidence", ev.String())
}

func (h meshHandler) Died(peer NodeID, proof elector.Proof) {
	h.n.recorder.Record(recording.Record{
		Kind: recording.Died, Peer: string(peer), Why: proof.String(), Faults: h.n.faults(),
	})
	h.n.loop.Died(peer, proof)
	h.n.log.Debug("process proven dead", "peer", peer, "proof", proof.String())
}

func (h meshHandler) Received(peer NodeID, group string, m elector.Message) {
	h.n.loop.Received(peer, group, m)
}

// wake fills a channel that holds one element. It never waits.
func wake(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// faults are the failures that were made on purpose, in words; "" if there are none.
func (n *Node) faults() string {
	if n.cfg.Faults == nil {
		return ""
	}
	return strings.TrimPrefix(n.cfg.Faults.String(), "none")
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
	promise, err := n.loop.LongestPromise(ctx)
	if err != nil {
		return err
	}
	if err := n.mesh.Forget(id, promise); err != nil {
		return err
	}
	n.diagnosis.Forget(id)
	return nil
}
