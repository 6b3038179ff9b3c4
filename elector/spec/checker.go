package spec

import (
	"fmt"
	"strings"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/lsn"
)

// Checks selects what a Checker demands. The zero value demands everything.
type Checks struct {
	NoLeases   bool // two leases may be valid at once, LSNs may go backwards
	TwoLeaders bool // two nodes may lead in one term
}

// Checker holds a cluster against the invariants of the protocol, event by
// event. It knows nothing of how the cluster runs: simulated and live event
// streams can be fed to it alike, in the order of time. Its memory grows with
// the number of leaderships only. It is not safe for concurrent use.
type Checker struct {
	checks  Checks
	nodes   map[elector.NodeID]*record
	order   []*record // as first seen
	leaders map[lsn.Term]elector.NodeID
	issued  lsn.LSN // newest that a resource has admitted
}

// record is what the checker remembers of one node.
type record struct {
	id         elector.NodeID
	role       elector.Role
	term       lsn.Term // newest told by the running process
	durable    elector.Terms
	said       lsn.Term // highest that it spoke for, over its whole life
	voteTerm   lsn.Term // newest term in which it voted, over its whole life
	vote       elector.NodeID
	leaseUntil time.Duration
	workUntil  time.Duration
}

// Violation is a broken invariant: which one, how, and how to see it again.
type Violation struct {
	// Rule is "I1", "I2", "I3", "work", "transition", "vote", "votes", "promise", "scouting",
	// "state", "lease", "persist" or "wedge".
	Rule   string
	Detail string
	Seed   uint64        // of the simulation
	At     time.Duration // simulated time
	Trace  []string      // the last events, oldest first
}

// Error tells all of it, the trace last, one event a line.
func (v *Violation) Error() string {
	return fmt.Sprintf("%s violated at %s with seed %d: %s\n  %s",
		v.Rule, v.At, v.Seed, v.Detail, strings.Join(v.Trace, "\n  "))
}

// Broken returns a violation of a rule.
func Broken(rule, format string, args ...any) *Violation {
	return &Violation{Rule: rule, Detail: fmt.Sprintf(format, args...)}
}

// longAgo is earlier than every time.
const longAgo time.Duration = -1 << 63

// NewChecker returns a checker that has seen nothing yet.
func NewChecker(c Checks) *Checker {
	return &Checker{
		checks: c, nodes: map[elector.NodeID]*record{}, leaders: map[lsn.Term]elector.NodeID{},
	}
}

func (c *Checker) node(id elector.NodeID) *record {
	r, ok := c.nodes[id]
	if !ok {
		r = &record{id: id, leaseUntil: longAgo, workUntil: longAgo}
		c.nodes[id] = r
		c.order = append(c.order, r)
	}
	return r
}

// Booted notes that a process started on a disk that holds terms, which must be
// what the disk had before (I3).
func (c *Checker) Booted(id elector.NodeID, terms elector.Terms) *Violation {
	r := c.node(id)
	r.role, r.term, r.leaseUntil = elector.Dormant, terms.Entered, longAgo
	return c.Durable(id, terms)
}

// Gone notes that the process of a node is no more, and its lease with it.
func (c *Checker) Gone(id elector.NodeID) { c.node(id).leaseUntil = longAgo }

// Wiped notes that a node lost its disk: it is a new node under an old name.
func (c *Checker) Wiped(id elector.NodeID) {
	r := c.node(id)
	*r = record{id: id, leaseUntil: longAgo, workUntil: longAgo}
}

// Transition checks that the protocol knows the transition, that it begins where
// the last one ended, that the term does not go backwards, and I1.
func (c *Checker) Transition(id elector.NodeID, t elector.Transition) *Violation {
	r := c.node(id)
	switch {
	case !t.Legal():
		return Broken("transition", "%s made %q, which the protocol does not know", id, t)
	case t.From != r.role:
		return Broken("transition", "%s was %s and made %q", id, r.role, t)
	case t.Term < r.term:
		return Broken("I3", "%s was in term %d and made %q", id, r.term, t)
	}
	r.role, r.term = t.To, t.Term
	if t.To == elector.Leader {
		return c.Leads(id, t.Term)
	}
	return nil
}

// Leads checks I1: at most one leader per term.
func (c *Checker) Leads(id elector.NodeID, term lsn.Term) *Violation {
	other, ok := c.leaders[term]
	if ok && other != id && !c.checks.TwoLeaders {
		return Broken("I1", "%s leads in term %d, in which %s led", id, term, other)
	}
	c.leaders[term] = id
	return nil
}

// Lease checks I2 for a lease that began, grew or ended: it is valid from now
// until a time on the checker's clock, which all calls share.
func (c *Checker) Lease(
	now time.Duration, id elector.NodeID, term lsn.Term, until time.Duration,
) *Violation {
	holder := c.node(id)
	holder.leaseUntil = until
	if until <= now || c.checks.NoLeases {
		return nil
	}
	for _, r := range c.order {
		if r != holder && r.leaseUntil > now {
			return Broken("I2", "%s has a lease of term %d until %s, while that of %s runs until %s",
				id, term, until, r.id, r.leaseUntil)
		}
	}
	return nil
}

// Work checks that guarded work of two nodes never overlaps, for work that began,
// goes on or is about to end: until is its end, at the latest, on the clock that
// all calls share.
func (c *Checker) Work(now time.Duration, id elector.NodeID, until time.Duration) *Violation {
	worker := c.node(id)
	worker.workUntil = until
	if until <= now || c.checks.NoLeases {
		return nil
	}
	for _, r := range c.order {
		if r != worker && r.workUntil > now {
			return Broken("work", "guarded work of %s goes on until %s, while that of %s does until %s",
				id, until, r.id, r.workUntil)
		}
	}
	return nil
}

// Durable checks I3 for terms that reached the disk of a node: the entered one does not go
// down, and all that the node spoke for stay reserved.
func (c *Checker) Durable(id elector.NodeID, terms elector.Terms) *Violation {
	r := c.node(id)
	if terms.Entered < r.durable.Entered || terms.Reserved < max(terms.Entered, r.said) {
		return Broken("I3", "the disk of %s had %+v and got %+v after it spoke for term %d",
			id, r.durable, terms, r.said)
	}
	r.durable = terms
	return nil
}

// Issued checks that no LSN which was issued under a valid lease comes after a
// newer one: a resource behind a fence would refuse the true leader.
func (c *Checker) Issued(id elector.NodeID, n lsn.LSN) *Violation {
	if n.Compare(c.issued) <= 0 && !c.checks.NoLeases {
		return Broken("I3", "%s issued LSN %d.%d after %d.%d was issued",
			id, n.Term, n.Counter, c.issued.Term, c.issued.Counter)
	}
	c.issued = n
	return nil
}

// Sent checks a message that leaves a node: its term is reserved on disk, a vote is the
// only one of its term, and a heartbeat that of the only leader.
func (c *Checker) Sent(id elector.NodeID, e *elector.Envelope) *Violation {
	m, r := &e.Message, c.node(id)
	if m.Term > r.durable.Reserved {
		return Broken("persist", "%s sent %q, but its disk has %+v", id, e, r.durable)
	}
	r.said = max(r.said, m.Term)
	switch {
	case m.Kind == elector.ElectionProposal:
		return c.voted(r, id, m.Term)
	case m.Kind == elector.ElectionProposalResponse && m.WillVote:
		return c.voted(r, e.To, m.ProposedTerm)
	case m.Kind == elector.LeaderHeartbeat:
		return c.Leads(id, m.Term)
	}
	return nil
}

// voted checks that a node votes at most once per term, over its whole life.
func (c *Checker) voted(r *record, candidate elector.NodeID, term lsn.Term) *Violation {
	switch {
	case term < r.voteTerm:
		return Broken("vote", "%s voted for %s in term %d after it voted in term %d",
			r.id, candidate, term, r.voteTerm)
	case term == r.voteTerm && candidate != r.vote:
		return Broken("vote", "%s voted for %s in term %d, in which it voted for %s",
			r.id, candidate, term, r.vote)
	}
	r.voteTerm, r.vote = term, candidate
	return nil
}
