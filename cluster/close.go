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
// does nothing. The default election is closed with its node.
func (e *Election) Close(ctx context.Context) error {
	e.n.call(func() {
		if e.n.groups[e.g.name] == e.g {
			e.g.closing = true
			e.n.bow(e.g)
		}
	})
	if err := e.n.awaitEnd(ctx, e.g); err != nil {
		return fmt.Errorf("close election %q: %w", e.g.name, err)
	}
	return nil
}

// bow asks an election to end when its guarded work has stopped.
func (n *Node) bow(g *group) {
	g.refuse(ErrClosed)
	n.step(g, elector.Stop{})
}

// halt ends an election at once, for the given reason. Where guarded work goes on
// nothing is handed over; it reports whether that is so.
func (n *Node) halt(g *group, why error) (cut bool) {
	g.refuse(why)
	working := g.held != nil && g.held.at() != over
	cut = working && g.leads != 0
	if working {
		g.held.stopBy(elector.Stopped, n.clock.Now().Add(g.lease))
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
		cut := false
		n.call(func() { cut = n.halt(g, ErrClosed) })
		if cut {
			return fmt.Errorf("guarded work had not stopped, so nothing was handed over: %w", context.Cause(ctx))
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
