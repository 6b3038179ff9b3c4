package loop

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/bmqelect/bmqelect/cluster/internal/leadership"
	"github.com/bmqelect/bmqelect/elector"
)

// Resign gives up what this node has in an election. It returns when the node does not lead,
// or when ctx ends, and then the handover goes on.
func (l *Loop) Resign(ctx context.Context, e *Election) error {
	_, _, err := l.handOver(ctx, e, func(d *Driver) (elector.NodeID, error) {
		e.Feed(leadership.Resign{})
		d.stepRequests(e.g)
		return "", nil
	})
	return err
}

// StepDown lets this node step down, and not stand again for the given time. It returns as
// Resign does. A node that does not lead only rests.
func (l *Loop) StepDown(ctx context.Context, e *Election, rest time.Duration) error {
	_, _, err := l.handOver(ctx, e, func(d *Driver) (elector.NodeID, error) {
		if e.g.leadTerm == 0 && rest == 0 {
			return "", elector.ErrNotLeader
		}
		if e.g.leadTerm != 0 {
			if err := d.refuseUnnamed(); err != nil {
				return "", err
			}
		}
		d.step(e.g, elector.Resign{Rest: rest})
		return "", nil
	})
	return err
}

// Transfer hands leadership over to another voter, or to the best follower if to is "". It
// returns as soon as this node does not lead, and names the voter. If the handover fails, this
// node leads on.
func (l *Loop) Transfer(ctx context.Context, e *Election, to elector.NodeID) (
	elector.NodeID, error,
) {
	best, leads, err := l.handOver(ctx, e, func(d *Driver) (elector.NodeID, error) {
		best, err := d.successor(e.g, to)
		if err == nil {
			d.step(e.g, elector.Transfer{To: best})
		}
		return best, err
	})
	if err == nil && leads {
		err = fmt.Errorf("it does not answer, or cannot lead any more; node %s leads on", l.Node)
	}
	return cmp.Or(best, to), err
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
		why := errors.New("none is connected, a candidate, and acks heartbeats")
		for i, id := range slices.DeleteFunc(slices.Clone(g.machine.Electorate()),
			func(id elector.NodeID) bool { return id == d.Node }) {
			if one := g.machine.Transferable(id); i == 0 {
				why = one
			} else {
				why = fmt.Errorf("%w; %w", why, one)
			}
		}
		return "", fmt.Errorf("no follower could take over: %w", why)
	}
	return to, g.machine.Transferable(to)
}

// handOver runs begin on the driver, and waits until no handover of the election is under way. It
// returns what begin returned, and whether this node led at that moment: by the time the caller
// looks, it may have been elected again.
func (l *Loop) handOver(
	ctx context.Context, e *Election, begin func(*Driver) (elector.NodeID, error),
) (to elector.NodeID, leads bool, err error) {
	end := make(chan bool, 1)
	to, err = ask(ctx, l, func(d *Driver) (elector.NodeID, error) {
		if err := e.Ended(); err != nil {
			return "", err
		}
		to, err := begin(d)
		if err == nil {
			e.g.own().handovers = append(e.g.handovers, end)
			e.g.signalHandoverEnd()
		}
		return to, err
	})
	if err != nil {
		return to, false, err
	}
	leads, err = await(ctx, l, end, l.ended)
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("under way, and going on: %w", err)
	}
	return to, leads, err
}
