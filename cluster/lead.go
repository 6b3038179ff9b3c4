package cluster

import (
	"errors"
	"fmt"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/lsn"
)

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
		return lsn.LSN{}, fmt.Errorf("next LSN of node %s in election %q: %w", e.n.cfg.Node, e.g.name, ErrNotLeader)
	}
	return next, err
}

// NextLSN is Election.NextLSN of the default election.
func (n *Node) NextLSN() (lsn.LSN, error) { return n.election.NextLSN() }

// Subscribe returns a subscription to the events of all elections of this node from now on, of which
// up to buffer wait for the subscriber. Subscribe before reading Status to miss
// nothing.
func (n *Node) Subscribe(buffer int) *Subscription { return n.hub.subscribe("", buffer) }

// Subscribe is Node.Subscribe for the events of this election alone.
func (e *Election) Subscribe(buffer int) *Subscription { return e.n.hub.subscribe(e.g.name, buffer) }
