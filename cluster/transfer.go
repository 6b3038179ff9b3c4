package cluster

import (
	"context"
	"errors"
	"fmt"

	"github.com/bmqelect/bmqelect/elector"
)

// transferBuffer is more than the events of a few elections.
const transferBuffer = 64

// Transfer hands leadership from this node to another voter, or to the best
// follower if to is "". It returns nil when the target leads. It fails, and this
// node leads on, if this node is not the leader, or the target is not fit (not
// connected, not a candidate, without a recent ack) or does not answer within the
// election result's time. Once the target has answered, guarded work is told to stop and
// waited for, at most until the lease ends; then this node steps down. It fails
// after that only if another node is elected instead. When ctx ends first, the
// transfer goes on, and may still succeed.
func (e *Election) Transfer(ctx context.Context, to NodeID) error {
	sub := e.Subscribe(transferBuffer)
	defer sub.Close()
	to, err := e.beginTransfer(ctx, to)
	if err == nil {
		err = e.awaitSuccessor(ctx, sub, to)
	}
	if err != nil {
		return fmt.Errorf("transfer from node %s to %s in election %q: %w", e.n.cfg.Node, or(to, "the best follower"), e.g.name, err)
	}
	return nil
}

// Transfer is Election.Transfer of the default election.
func (n *Node) Transfer(ctx context.Context, to NodeID) error { return n.election.Transfer(ctx, to) }

// beginTransfer steps down in favor of a voter, if that can be, and names it.
func (e *Election) beginTransfer(ctx context.Context, to NodeID) (NodeID, error) {
	named := make(chan NodeID, 1)
	leads, err := e.settle(ctx, func() error {
		best, err := successor(e.g.machine, to)
		named <- best
		if err == nil {
			e.n.step(e.g, elector.Transfer{To: best})
		}
		return err
	})
	select {
	case to = <-named:
	default: // the driver did not get to it
	}
	if err == nil && leads {
		err = fmt.Errorf("it does not answer, or cannot lead any more; node %s leads on", e.n.cfg.Node)
	}
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

// awaitSuccessor waits until somebody leads after this node, and fails if it is
// not the target.
func (e *Election) awaitSuccessor(ctx context.Context, sub *Subscription, to NodeID) error {
	left := false
	for {
		select {
		case now, ok := <-sub.Events():
			left = left || now.From == elector.Leader && now.To != elector.Leader || now.Missed > 0
			switch {
			case !ok:
				return ErrClosed
			case !left:
			case now.Leader == to:
				return nil
			case now.Leader != "":
				return fmt.Errorf("node %s was elected instead, in term %d", now.Leader, now.Term)
			}
		case <-e.g.gone:
			return ErrClosed
		case <-ctx.Done():
			return fmt.Errorf("this node gave up leadership, but the target does not lead yet: %w", context.Cause(ctx))
		}
	}
}
