package cluster

import (
	"errors"
	"fmt"

	"github.com/bmqelect/bmqelect/cluster/internal/loop"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/lsn"
	"github.com/bmqelect/bmqelect/netmesh"
)

// Election is this node's part in one election: the default one, or one of its
// own that Node.Election opened. Elections of one name on different nodes are the
// same election. All methods are safe for concurrent use.
type Election struct {
	n *Node
	p *loop.Election
}

// ErrOpen means that an election of that name is open on this node already.
var ErrOpen = loop.ErrOpen

// Election opens an election of its own, a group, beside the default one and all
// others. It has the node's voters; which of them stand, and in what rank, cfg
// says on each. Elections share links, timers and the disk: a hundred cost little
// more than one. There is no limit to their number.
//
// A voter on which the election is not open does not vote in it. The name may have 1 to 255 bytes,
// without spaces. The error is a *ConfigError, wraps ErrOpen or ErrClosed, or is that of the disk.
// It is an error, too, if the disk does not answer within ten seconds; the election is not opened
// then.
func (n *Node) Election(name string, cfg ElectionConfig) (*Election, error) {
	if netmesh.NameProblem(name) != "" {
		return nil, fmt.Errorf("open election %q: the name must have 1 to %d bytes and no spaces",
			name, netmesh.MaxNameLength)
	}
	all := n.cfg
	all.Election = cfg.withDefaults()
	err := all.Validate()
	var p *loop.Election
	if err == nil {
		p, err = n.loop.Open(name, all.setup(all.Election))
	}
	if err != nil {
		return nil, fmt.Errorf("open election %q: %w", name, err)
	}
	return &Election{n, p}, nil
}

// ErrNotOpen means that no election of that name is open on this node.
var ErrNotOpen = loop.ErrNotOpen

// Lookup returns the election of that name that is open on this node, the default
// one by DefaultGroup. It opens nothing, and keeps nothing open: see Open. The error wraps
// ErrNotOpen, or is why the node has ended.
func (n *Node) Lookup(name string) (*Election, error) {
	p, err := n.loop.Lookup(name, false)
	if err != nil {
		return nil, fmt.Errorf("election %q on node %s: %w", name, n.cfg.Node, err)
	}
	return &Election{n, p}, nil
}

// Group is the election's name.
func (e *Election) Group() string { return e.p.Name }

// Status returns a snapshot of the election as this node sees it.
func (e *Election) Status() GroupStatus {
	s := e.n.loop.Snapshot(e.p)
	return e.n.groupStatus(&s, e.n.memberStatus(s.Electorate))
}

// ErrNotLeader means that this node does not lead, or that its lease has run out.
var ErrNotLeader = elector.ErrNotLeader

// IsLeader reports whether this node leads and its lease is valid at this moment. The clock is read
// at every call, so a process that was paused finds out before it does anything. At no moment do
// two nodes report true, as long as the rates of their clocks differ by no more than the configured
// drift.
//
// The answer may be outdated when the caller acts on it. Actions that two leaders must not do one
// after the other need a fencing token as well: see NextLSN.
func (e *Election) IsLeader() bool { return e.p.Leading() }

// IsLeader is Election.IsLeader of the default election.
func (n *Node) IsLeader() bool { return n.election.IsLeader() }

// NextLSN issues the next Leader Sequence Number, a fencing token: a resource that keeps an
// lsn.Fence refuses the requests of an older leader. The error wraps ErrNotLeader if this node does
// not lead.
func (e *Election) NextLSN() (lsn.LSN, error) {
	next, err := e.p.NextLSN()
	if errors.Is(err, lsn.ErrNotLeading) || err == nil && !e.IsLeader() {
		return lsn.LSN{}, e.failed("next LSN", ErrNotLeader)
	}
	return next, err
}

// NextLSN is Election.NextLSN of the default election.
func (n *Node) NextLSN() (lsn.LSN, error) { return n.election.NextLSN() }

// errElectionClosed is ErrClosed on a node that goes on.
type errElectionClosed struct{}

func (errElectionClosed) Error() string { return "the election is closed on this node" }
func (errElectionClosed) Unwrap() error { return ErrClosed }

// failed adds to an error what failed in which election; nil without an error.
func (e *Election) failed(what string, why error) error {
	if why == nil {
		return nil
	}
	if why == ErrClosed && e.n.Err() == nil {
		why = errElectionClosed{}
	}
	return fmt.Errorf("%s of node %s in election %q: %w", what, e.n.cfg.Node, e.p.Name, why)
}
