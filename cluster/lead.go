package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/lsn"
)

// ErrNotLeader means that this node does not lead, or that its lease has run out.
var ErrNotLeader = elector.ErrNotLeader

// IsLeader reports whether this node leads and its lease is valid at this very
// moment: the clock is read at every call, so a process that was paused finds
// out before it does anything. At no moment do two nodes report true, as long as
// their clocks' rates differ by no more than the configured drift.
//
// The answer is old as soon as it is given. What must not be done by two nodes
// in turn needs a fencing token as well: see NextLSN.
func (e *Election) IsLeader() bool { return e.g.leading(e.n.clock.Now()) }

// IsLeader is Election.IsLeader of the default election.
func (n *Node) IsLeader() bool { return n.election.IsLeader() }

// NextLSN issues the next Leader Sequence Number, a fencing token: a resource
// that keeps an lsn.Fence refuses what an older leader sends. It returns an
// error that wraps ErrNotLeader if this node does not lead.
func (e *Election) NextLSN() (lsn.LSN, error) {
	next, err := e.g.sequencer.Next()
	if errors.Is(err, lsn.ErrNotLeading) || err == nil && !e.IsLeader() {
		return lsn.LSN{}, fmt.Errorf("next LSN of node %s in election %q: %w", e.n.cfg.Node, e.g.name, ErrNotLeader)
	}
	return next, err
}

// NextLSN is Election.NextLSN of the default election.
func (n *Node) NextLSN() (lsn.LSN, error) { return n.election.NextLSN() }

// Subscribe returns a subscription to the events of all elections of this node from now on, of which
// up to buffer wait for the subscriber. Subscribe before reading Status to miss
// nothing.
func (n *Node) Subscribe(buffer int) *Subscription { return n.hub.subscribe("", buffer) }

// Subscribe is Node.Subscribe for the events of this election alone.
func (e *Election) Subscribe(buffer int) *Subscription { return e.n.hub.subscribe(e.g.name, buffer) }

// transferBuffer is more than the events of a few elections.
const transferBuffer = 64

// Transfer hands leadership from this node to another voter, or to the best
// follower if to is "". It returns nil when the target leads. It fails, and this
// node leads on, if this node is not the leader, or the target is not fit (not
// connected, not a candidate, without a recent ack) or does not answer within the
// election result's time. Once the target has answered this node steps down; it
// then fails only if another node is elected instead, or ctx ends first.
func (e *Election) Transfer(ctx context.Context, to NodeID) error {
	sub := e.Subscribe(transferBuffer)
	defer sub.Close()
	to, err := e.beginTransfer(to)
	if err != nil {
		return fmt.Errorf("transfer from node %s: %w", e.n.cfg.Node, err)
	}
	look := time.NewTicker(transferLook)
	defer look.Stop()
	for {
		select {
		case now, ok := <-sub.Events():
			switch {
			case !ok:
				return fmt.Errorf("transfer to node %s: %w", to, ErrClosed)
			case now.Leader == to:
				return nil
			case now.Leader != "":
				return fmt.Errorf("transfer to node %s: node %s was elected instead, in term %d", to, now.Leader, now.Term)
			}
		case <-look.C:
			if e.gaveUpTransfer() {
				return fmt.Errorf("transfer to node %s: it does not answer; node %s leads on", to, e.n.cfg.Node)
			}
		case <-ctx.Done():
			return fmt.Errorf("transfer to node %s: it does not lead yet: %w", to, ctx.Err())
		}
	}
}

// transferLook is how often it is looked whether a transfer was given up, which
// is no event.
const transferLook = 50 * time.Millisecond

// gaveUpTransfer reports whether this node leads on without a transfer under way.
func (e *Election) gaveUpTransfer() (gaveUp bool) {
	e.n.call(func() {
		leads := e.g.machine.Lease() != (elector.Lease{})
		gaveUp = leads && e.g.machine.Transferring() == ""
	})
	return gaveUp
}

// Transfer is Election.Transfer of the default election.
func (n *Node) Transfer(ctx context.Context, to NodeID) error { return n.election.Transfer(ctx, to) }

// beginTransfer steps down in favor of a voter, if that can be, and names it.
func (e *Election) beginTransfer(to NodeID) (NodeID, error) {
	err := ErrClosed
	e.n.call(func() {
		if e.n.Err() != nil {
			err = e.n.Err()
			return
		}
		if e.n.groups[e.g.name] != e.g {
			return
		}
		if to, err = successor(e.g.machine, to); err == nil {
			e.n.step(e.g, elector.Transfer{To: to})
		}
	})
	return to, err
}

// successor is the voter to hand over to: the one asked for, or the best.
func successor(m *elector.Machine, to NodeID) (NodeID, error) {
	if to == "" {
		to = m.BestSuccessor()
	}
	if to == "" && m.Lease() != (elector.Lease{}) {
		return "", errors.New("no follower could take over: none is connected, a candidate, and acks heartbeats")
	}
	return to, m.Transferable(to)
}
