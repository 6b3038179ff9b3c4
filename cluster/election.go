package cluster

import (
	"errors"
	"fmt"
	"slices"
	"strings"

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
// more than one.
//
// A voter on which the election is not open does not vote in it. The name may
// have 1 to 255 bytes, without spaces. The error is a *ConfigError, wraps ErrOpen
// or ErrClosed, or says why the disk did not take it.
func (n *Node) Election(group string, cfg ElectionConfig) (*Election, error) {
	if group == "" || len(group) > netmesh.MaxNameLength || strings.ContainsFunc(group, isSpace) {
		return nil, fmt.Errorf("open election %q: the name must have 1 to %d bytes and no spaces", group, netmesh.MaxNameLength)
	}
	all := n.cfg
	all.Election = cfg.withDefaults()
	err := all.Validate()
	if err == nil {
		err = n.reserve(group)
	}
	if err != nil {
		return nil, fmt.Errorf("open election %q: %w", group, err)
	}
	// An election of that name may just have been closed: its last term must be
	// on disk before it is read, or a vote could be given twice.
	n.persister.settle()
	g, start, err := n.newGroup(group, all.Election)
	if !n.call(func() {
		delete(n.opening, group)
		if err == nil && n.Err() != nil {
			err = n.Err()
		}
		if err == nil {
			n.enter(g, start)
		}
	}) {
		err = ErrClosed
	}
	if err != nil {
		return nil, fmt.Errorf("open election %q: %w", group, err)
	}
	return &Election{n, g}, nil
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
func (n *Node) reserve(group string) error {
	err := ErrClosed
	n.call(func() {
		switch {
		case n.Err() != nil:
			err = n.Err()
		case n.leaving:
		case n.groups[group] != nil || n.opening[group]:
			err = ErrOpen
		case n.closed[group] != nil && n.closed[group].held != nil:
			err = fmt.Errorf("the work of its last leadership here has not been released: %w", ErrCampaigning)
		default:
			n.opening[group] = true
			delete(n.closed, group)
			err = nil
		}
	})
	return err
}

func isSpace(r rune) bool { return r <= ' ' || r == 0x7f }

// newGroup returns an election and the input that starts it.
func (n *Node) newGroup(name string, cfg ElectionConfig) (*group, elector.Start, error) {
	machine, err := elector.New(n.cfg.elector(cfg))
	if err != nil {
		return nil, elector.Start{}, err
	}
	record, err := n.store.Group(name)
	if err != nil {
		return nil, elector.Start{}, err
	}
	n.log.Debug("election opened", "group", name, "term", record.Term, "first", !record.Booted)
	g := &group{
		name: name, machine: machine, wake: elector.Never, place: nowhere,
		measure: groupMeasure{lease: cfg.Timing.Lease},
		lease:   cfg.Timing.Lease, promise: cfg.Timing.Promise(), margin: cfg.StopMargin, notCandidate: cfg.NotCandidate || !slices.Contains(n.cfg.Voters, n.cfg.Node),
		able: true, campaigns: cfg.AwaitCampaign, gone: make(chan struct{}),
	}
	return g, elector.Start{Term: record.Term}, nil
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
