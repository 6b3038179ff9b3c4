package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bmqelect/bmqelect/elector"
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
	if name == "" || len(name) > netmesh.MaxNameLength || strings.ContainsFunc(name, isSpace) {
		return nil, fmt.Errorf("open election %q: the name must have 1 to %d bytes and no spaces", name, netmesh.MaxNameLength)
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
	type opened struct {
		g     *group
		start elector.Start
		err   error
	}
	ready := make(chan opened, 1)
	go func() {
		// An election of that name may just have been closed: its last term must be
		// on disk before it is read, or a vote could be given twice.
		n.persister.settle()
		g, start, err := n.newGroup(name, cfg)
		ready <- opened{g, start, err}
	}()
	select {
	case o := <-ready:
		err := o.err
		if !n.call(func() {
			delete(n.opening, name)
			if err == nil && n.Err() != nil {
				err = n.Err()
			}
			if err == nil {
				n.enter(o.g, o.start)
			}
		}) {
			err = ErrClosed
		}
		return o.g, err
	case <-ctx.Done():
		go func() {
			<-ready
			n.call(func() { delete(n.opening, name) })
		}()
		return nil, fmt.Errorf("the disk has not answered within %s", openTime)
	}
}

// ErrNotOpen means that no election of that name is open on this node.
var ErrNotOpen = errors.New("no election of that name is open")

// Lookup returns the election of that name that is open on this node, the default
// one by DefaultGroup. The error wraps ErrNotOpen, or is why the node has ended.
func (n *Node) Lookup(group string) (*Election, error) {
	err := ErrClosed
	var e *Election
	n.call(func() {
		g := n.groups[group]
		switch {
		case n.Err() != nil:
			err = n.Err()
		case g == nil || g.closing:
			err = ErrNotOpen
		default:
			e, err = &Election{n, g}, nil
		}
	})
	if err != nil {
		return nil, fmt.Errorf("election %q on node %s: %w", group, n.cfg.Node, err)
	}
	return e, nil
}

// reserve keeps a name for an election that is being opened.
func (n *Node) reserve(ctx context.Context, group string) error {
	outcome := ErrClosed
	err := n.callWithin(ctx, func() {
		switch {
		case n.Err() != nil:
			outcome = n.Err()
		case n.leaving:
		case n.groups[group] != nil || n.opening[group]:
			outcome = ErrOpen
		case n.closed[group] != nil:
			outcome = fmt.Errorf("the work of its last leadership here has not been released: %w", ErrCampaigning)
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

func isSpace(r rune) bool { return r <= ' ' || r == 0x7f }

// newGroup returns an election and the input that starts it.
func (n *Node) newGroup(name string, cfg ElectionConfig) (*group, elector.Start, error) {
	machine, err := elector.New(n.cfg.elector(cfg))
	if err != nil {
		return nil, elector.Start{}, err
	}
	term, err := n.store.Group(name)
	if err != nil {
		return nil, elector.Start{}, err
	}
	n.log.Debug("election opened", "group", name, "term", term)
	g := &group{
		name: name, machine: machine, wake: elector.Never, place: nowhere,
		measure: groupMeasure{lease: cfg.Timing.Lease},
		lease:   cfg.Timing.Lease, promise: cfg.Timing.Promise(), margin: cfg.StopMargin, notCandidate: cfg.NotCandidate || !slices.Contains(n.cfg.Voters, n.cfg.Node),
		able: true, campaigns: cfg.AwaitCampaign, gone: make(chan struct{}),
	}
	return g, elector.Start{Term: term}, nil
}

// enter begins to take part in an election. It runs on the driver, or before it.
func (n *Node) enter(g *group, start elector.Start) {
	n.groups[g.name] = g
	n.agenda.add(g)
	n.review(g) // before the start, which elects a lone voter at once
	n.step(g, start)
	for peer := range n.up {
		n.step(g, elector.LinkUp{Peer: peer})
	}
}

// Group is the election's name.
func (e *Election) Group() string { return e.g.name }

// Status returns a snapshot of the election as this node sees it.
func (e *Election) Status() (st GroupStatus) {
	members := e.n.memberStatus()
	e.n.view(func() { st = e.n.groupStatus(e.g, members) })
	return st
}
