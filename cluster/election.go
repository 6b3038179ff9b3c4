package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/bmqelect/bmqelect/cluster/internal/leadership"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/lsn"
	"github.com/bmqelect/bmqelect/netmesh"
)

// Election is this node's part in one election: the default one, or one of its
// own that Node.Election opened. Elections of one name on different nodes are the
// same election. All methods are safe for concurrent use.
type Election struct {
	n *Node
	g *group
}

// ErrOpen means that an election of that name is open on this node already.
var ErrOpen = errors.New("the election is open already")

// Election opens an election of its own, a group, beside the default one and all
// others. It has the node's voters; which of them stand, and in what rank, cfg
// says on each. Elections share links, timers and the disk: a hundred cost little
// more than one. There is no limit to their number.
//
// A voter on which the election is not open does not vote in it. The name may
// have 1 to 255 bytes, without spaces. The error is a *ConfigError, wraps ErrOpen
// or ErrClosed, or says why the disk did not take it. A disk that has not answered
// within ten seconds is an error, too; the election then is not opened.
func (n *Node) Election(name string, cfg ElectionConfig) (*Election, error) {
	if netmesh.NameProblem(name) != "" {
		return nil, fmt.Errorf("open election %q: the name must have 1 to %d bytes and no spaces",
			name, netmesh.MaxNameLength)
	}
	all := n.cfg
	all.Election = cfg.withDefaults()
	err := all.Validate()
	ctx, cancel := context.WithTimeoutCause(context.Background(), openTime, errHeldUp)
	defer cancel()
	if err == nil {
		err = n.reserve(ctx, name)
	}
	var g *group
	if err == nil {
		g, err = n.open(ctx, name, all.Election)
	}
	if err != nil {
		return nil, fmt.Errorf("open election %q: %w", name, err)
	}
	return &Election{n, g}, nil
}

// openTime is how long the disk has to take a new election. No disk on which a node
// could be elected takes that long.
const openTime = 10 * time.Second

// open takes part in an election whose name is reserved. If the disk does not answer
// before ctx ends, the name stays reserved until it does.
func (n *Node) open(ctx context.Context, name string, cfg ElectionConfig) (*group, error) {
	var g *group
	ready := make(chan error, 1)
	go func() {
		// An election of that name may just have been closed: its last term must be
		// on disk before it is read, or a vote could be given twice.
		n.persister.flush()
		var err error
		g, err = n.newGroup(name, cfg)
		ready <- err
	}()
	var err error
	select {
	case err = <-ready:
	case <-ctx.Done():
		go func() {
			<-ready
			n.call(func() { delete(n.opening, name) })
		}()
		return nil, fmt.Errorf("the disk has not answered within %s", openTime)
	}
	entered := n.call(func() {
		delete(n.opening, name)
		if err == nil {
			err = n.Err()
		}
		if err == nil {
			n.enterElection(g)
		}
	})
	if !entered {
		return nil, ErrClosed
	}
	return g, err
}

// ErrNotOpen means that no election of that name is open on this node.
var ErrNotOpen = errors.New("no election of that name is open")

// Lookup returns the election of that name that is open on this node, the default
// one by DefaultGroup. The error wraps ErrNotOpen, or is why the node has ended.
func (n *Node) Lookup(name string) (*Election, error) {
	err := ErrClosed
	var g *group
	n.call(func() {
		g = n.groups[name]
		switch {
		case n.Err() != nil:
			err = n.Err()
		case g == nil || g.whyEnded() != nil:
			err = ErrNotOpen
		default:
			err = nil
		}
	})
	if err != nil {
		return nil, fmt.Errorf("election %q on node %s: %w", name, n.cfg.Node, err)
	}
	return &Election{n, g}, nil
}

// reserve keeps a name for an election that is being opened.
func (n *Node) reserve(ctx context.Context, group string) error {
	outcome := ErrClosed
	err := n.callWithin(ctx, func() {
		n.forgetReleased()
		switch {
		case n.Err() != nil:
			outcome = n.Err()
		case n.leaving:
		case n.groups[group] != nil || n.opening[group]:
			outcome = ErrOpen
		case n.closed[group] != nil:
			outcome = fmt.Errorf("the work of its last leadership here has not been released: %w",
				ErrCampaigning)
		default:
			n.opening[group] = true
			outcome = nil
		}
	})
	if err != nil {
		return err
	}
	return outcome
}

// Group is the election's name.
func (e *Election) Group() string { return e.g.name }

// Status returns a snapshot of the election as this node sees it.
func (e *Election) Status() (st GroupStatus) {
	members := e.n.memberStatus()
	e.n.view(func() { st = e.n.groupStatus(e.g, members) })
	return st
}

// ErrNotLeader means that this node does not lead, or that its lease has run out.
var ErrNotLeader = elector.ErrNotLeader

// IsLeader reports whether this node leads and its lease is valid at this very
// moment: the clock is read at every call, so a process that was paused finds
// out before it does anything. At no moment do two nodes report true, as long as
// their clocks' rates differ by no more than the configured drift.
//
// The answer is old as soon as it is given. What must not be done by two nodes
// in turn needs a fencing token as well: see NextLSN.
func (e *Election) IsLeader() bool { return e.g.leading(e.n.now()) }

// IsLeader is Election.IsLeader of the default election.
func (n *Node) IsLeader() bool { return n.election.IsLeader() }

// NextLSN issues the next Leader Sequence Number, a fencing token: a resource
// that keeps an lsn.Fence refuses what an older leader sends. It returns an
// error that wraps ErrNotLeader if this node does not lead.
func (e *Election) NextLSN() (lsn.LSN, error) {
	next, err := e.g.sequencer.Next()
	if errors.Is(err, lsn.ErrNotLeading) || err == nil && !e.IsLeader() {
		return lsn.LSN{}, fmt.Errorf("next LSN of node %s in election %q: %w",
			e.n.cfg.Node, e.g.name, ErrNotLeader)
	}
	return next, err
}

// NextLSN is Election.NextLSN of the default election.
func (n *Node) NextLSN() (lsn.LSN, error) { return n.election.NextLSN() }

// do runs f on the driver if the election is open, and returns its error, why the
// election is not open, or the cause of ctx, as callWithin does.
func (e *Election) do(ctx context.Context, f func() error) error {
	var outcome error
	err := e.n.callWithin(ctx, func() {
		if outcome = e.g.whyEnded(); outcome == nil {
			outcome = f()
		}
	})
	if err != nil {
		return err
	}
	return outcome
}

// feed tells the machine of an election's leaderships that something happened. Any goroutine
// may call it; it does not wait for the driver.
func (n *Node) feed(g *group, in leadership.Input) {
	if e := g.feed(in); len(e.Requests) > 0 {
		n.waiting.add(g)
	}
}
