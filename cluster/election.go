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
// one by DefaultGroup. The error wraps ErrNotOpen, or is why the node has ended.
func (n *Node) Lookup(name string) (*Election, error) {
	p, err := n.loop.Lookup(name)
	if err != nil {
		return nil, fmt.Errorf("election %q on node %s: %w", name, n.cfg.Node, err)
	}
	return &Election{n, p}, nil
}

// Group is the election's name.
func (e *Election) Group() string { return e.p.Name }

// Status returns a snapshot of the election as this node sees it.
func (e *Election) Status() GroupStatus {
	return e.n.groupStatus(e.n.loop.Snapshot(e.p), e.n.memberStatus())
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
func (e *Election) IsLeader() bool { return e.p.Leading() }

// IsLeader is Election.IsLeader of the default election.
func (n *Node) IsLeader() bool { return n.election.IsLeader() }

// NextLSN issues the next Leader Sequence Number, a fencing token: a resource
// that keeps an lsn.Fence refuses what an older leader sends. It returns an
// error that wraps ErrNotLeader if this node does not lead.
func (e *Election) NextLSN() (lsn.LSN, error) {
	next, err := e.p.Sequencer.Next()
	if errors.Is(err, lsn.ErrNotLeading) || err == nil && !e.IsLeader() {
		return lsn.LSN{}, e.failed("next LSN", ErrNotLeader)
	}
	return next, err
}

// NextLSN is Election.NextLSN of the default election.
func (n *Node) NextLSN() (lsn.LSN, error) { return n.election.NextLSN() }

// failed says what could not be done in which election, and why; nil without a reason.
func (e *Election) failed(what string, why error) error {
	if why == nil {
		return nil
	}
	return fmt.Errorf("%s of node %s in election %q: %w", what, e.n.cfg.Node, e.p.Name, why)
}
