package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/bmqelect/bmqelect/elector"
)

// Close ends this node's part in the election. Guarded work is told to stop and
// waited for, at most until the lease ends; only then is leadership handed over,
// to the best follower. If ctx ends before, the node leaves without handing over:
// the others then wait until its lease has run out, so that the work which goes on
// still excludes theirs, and the error says so.
//
// The election may be opened again; like a node that has just started this one
// then supports nobody until what it may have promised has lapsed. Closing again
// does nothing. The default election is closed with its node: to close it is an error.
//
// Close returns at most a second after ctx has ended, whatever holds this node
// up. If that keeps it from stopping the election, the error says so, and the election
// ends as soon as the node goes on.
func (e *Election) Close(ctx context.Context) error {
	err := errors.New("it is the node's own and is closed with it, by Node.Close")
	if e.g.name != DefaultGroup {
		if err = e.n.beginClose(ctx, e.g); err == nil {
			err = e.n.awaitEnd(ctx, e.g)
		}
	}
	if err != nil {
		return fmt.Errorf("close election %q: %w", e.g.name, err)
	}
	return nil
}

// beginClose asks an election to end for good.
func (n *Node) beginClose(ctx context.Context, g *group) error {
	begin := func() {
		if n.groups[g.name] == g {
			g.closing = true
			n.bow(g)
		}
	}
	err := n.callWithin(ctx, begin)
	if err == nil || n.callBriefly(begin) || n.hasEnded() {
		return nil
	}
	return fmt.Errorf("%w: %w", errHeldUp, err)
}

// bow asks an election to end when its guarded work has stopped.
func (n *Node) bow(g *group) {
	g.refuse(ErrClosed)
	n.step(g, elector.Stop{})
}

// errHeldUp means that a node did not do in time what it was asked for.
var errHeldUp = errors.New("the node is held up and has not answered (does its logger block?)")

// hasEnded reports whether the driver has ended.
func (n *Node) hasEnded() bool {
	select {
	case <-n.driven:
		return true
	default:
		return false
	}
}

// halt ends an election at once, for the given reason. Where guarded work goes on
// nothing is handed over; it reports whether that is so.
func (n *Node) halt(g *group, why error) (cut bool) {
	g.refuse(why)
	working := g.held != nil && g.held.at() != over
	cut = working && g.leads != 0
	if working {
		g.held.stopBy(elector.Stopped, n.now().Add(g.lease))
		n.warden.add(g.held)
	}
	n.step(g, elector.Stop{Abrupt: working})
	return cut
}

// awaitEnd waits until an election has ended; it ends it itself when ctx does.
func (n *Node) awaitEnd(ctx context.Context, g *group) error {
	select {
	case <-g.gone: // also if ctx has ended
		return nil
	default:
	}
	select {
	case <-g.gone:
	case <-n.driven:
	case <-ctx.Done():
		cut := make(chan bool, 1)
		n.callBriefly(func() { cut <- n.halt(g, ErrClosed) })
		select {
		case cut := <-cut:
			if cut {
				return fmt.Errorf("guarded work had not stopped, so nothing was handed over: %w", context.Cause(ctx))
			}
		default:
			if !n.hasEnded() {
				return fmt.Errorf("%w: %w", errHeldUp, context.Cause(ctx))
			}
		}
	}
	return nil
}

// stopped reports whether a step ended the election on this node.
func stopped(e *elector.Effects) bool {
	return slices.ContainsFunc(e.Transitions, func(t elector.Transition) bool { return t.To == elector.Dormant })
}

// depart follows the end of an election on this node.
func (n *Node) depart(g *group) {
	g.announceCalm()
	if g.held != nil && g.held.at() != over {
		n.cut = slices.DeleteFunc(n.cut, func(l *Leadership) bool { return l.at() == over })
		n.cut = append(n.cut, g.held)
	}
	close(g.gone)
	if g.closing {
		delete(n.groups, g.name)
		n.agenda.remove(g)
		n.persister.leave(g.name)
		if g.held != nil {
			n.closed[g.name] = g
		}
	}
}

// bowOut ends this node's part in every election as Election.Close does.
func (n *Node) bowOut(ctx context.Context) (err error) {
	var groups []*group
	n.call(func() {
		n.leaving = true
		for _, g := range n.groups {
			groups = append(groups, g)
			n.bow(g)
		}
	})
	for _, g := range groups {
		err = errors.Join(err, n.awaitEnd(ctx, g))
	}
	return err
}
