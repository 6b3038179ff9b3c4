package loop

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/bmqelect/bmqelect/cluster/internal/leadership"
	"github.com/bmqelect/bmqelect/elector"
)

// Resign gives up what this node has in an election. It returns when the node does not lead,
// or when ctx ends, and then the handover goes on.
func (l *Loop) Resign(ctx context.Context, e *Election) error {
	_, err := l.handOver(ctx, e, func(d *Driver) error {
		e.Feed(leadership.Resign{})
		d.stepRequests(e.g)
		return nil
	})
	return err
}

// StepDown lets this node step down, and not stand again for the given time. It returns as
// Resign does. A node that does not lead only rests.
func (l *Loop) StepDown(ctx context.Context, e *Election, rest time.Duration) error {
	_, err := l.handOver(ctx, e, func(d *Driver) error {
		if e.g.leadTerm == 0 && rest == 0 {
			return elector.ErrNotLeader
		}
		if e.g.leadTerm != 0 {
			if err := d.refuseUnnamed(); err != nil {
				return err
			}
		}
		d.step(e.g, elector.Resign{Rest: rest})
		return nil
	})
	return err
}

// Transfer hands leadership over to another voter, or to the best follower if to is "". It
// returns to whom, as soon as this node does not lead. If the handover fails, it leads on.
func (l *Loop) Transfer(ctx context.Context, e *Election, to elector.NodeID) (
	elector.NodeID, error,
) {
	named := make(chan elector.NodeID, 1)
	leads, err := l.handOver(ctx, e, func(d *Driver) error {
		best, err := d.successor(e.g, to)
		named <- best
		if err == nil {
			d.step(e.g, elector.Transfer{To: best})
		}
		return err
	})
	select {
	case to = <-named:
	default: // the driver has not looked
	}
	if err == nil && leads {
		err = fmt.Errorf("it does not answer, or cannot lead any more; node %s leads on", l.Node)
	}
	return to, err
}

// successor is the voter to hand over to: the one asked for, or the best.
func (d *Driver) successor(g *group, to elector.NodeID) (elector.NodeID, error) {
	if to == "" && g.leadTerm != 0 {
		if err := d.refuseUnnamed(); err != nil {
			return "", err
		}
		to = g.machine.BestSuccessor()
	}
	if to == "" && g.machine.Lease() != (elector.Lease{}) {
		return "", errors.New(
			"no follower could take over: none is connected, a candidate, and acks heartbeats")
	}
	return to, g.machine.Transferable(to)
}

// handOver runs begin on the driver, and waits until no handover of the election is
// under way. It reports whether this node led at that moment: afterwards it may have
// been elected again.
func (l *Loop) handOver(ctx context.Context, e *Election, begin func(*Driver) error) (
	leads bool, err error,
) {
	end := make(chan bool, 1)
	err = l.Do(ctx, func(d *Driver) error {
		err := e.Ended()
		if err == nil {
			err = begin(d)
		}
		if err == nil {
			e.g.handovers = append(e.g.handovers, end)
			e.g.signalHandoverEnd()
		}
		return err
	})
	if err != nil {
		return false, err
	}
	select {
	case leads = <-end:
		return leads, nil
	case <-l.ended:
		err = ErrClosed
	case <-ctx.Done():
		err = fmt.Errorf("under way, and going on: %w", context.Cause(ctx))
	}
	select {
	case leads = <-end: // it has ended nevertheless
		return leads, nil
	default:
		return false, err
	}
}

// signalHandoverEnd lets those go on who wait for the end of a handover.
func (g *group) signalHandoverEnd() {
	if len(g.handovers) > 0 && g.machine.Handover() == (elector.Handover{}) {
		for _, end := range g.handovers {
			end <- g.leadTerm != 0
		}
		g.handovers = nil
	}
}
