package spec

import (
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/lsn"
)

// Cluster checks every step of every node of a cluster against the protocol: what a node may say
// after what it has heard and said before, whatever its machine believes. Live runs, of which less
// is known, report only the transitions. Events must be reported in the order of true time. Its
// memory grows only with leaderships and records. It is not safe for concurrent use.
type Cluster struct {
	checks  Checks
	quorum  int
	nodes   map[elector.NodeID]*node
	order   []*node // as first seen
	leaders map[lsn.Term]elector.NodeID
	issued  lsn.LSN // newest that a resource has admitted

	written   map[lsn.LSN]*version // records
	committed lsn.LSN              // the newest committed record
	lost      []elector.Voter      // by an emergency
}

// Checks selects what a Cluster demands. The zero value demands everything.
type Checks struct {
	NoLeases   bool // two leases may be valid at once, LSNs may go backwards
	TwoLeaders bool // two nodes may lead in one term
}

// node is what one member has done, over all its processes.
type node struct {
	id         elector.NodeID
	identity   elector.Identity // of its disk
	former     elector.Identity // of the disk that it lost last
	voter      bool             // of an election without a record
	role       elector.Role
	term       lsn.Term // newest told by the running process
	durable    elector.Terms
	said       lsn.Term // highest that it spoke for
	voteTerm   lsn.Term // newest term in which it voted ...
	vote       elector.NodeID
	lease      elector.Lease
	leaseUntil time.Duration
	workUntil  time.Duration
	promises   promises
	keeps
}

// longAgo is earlier than every time.
const longAgo time.Duration = -1 << 63

// NewCluster returns the specification of a cluster of which nothing has happened yet.
func NewCluster(voters []elector.NodeID, quorum int, c Checks) *Cluster {
	cluster := &Cluster{checks: c, quorum: quorum, nodes: map[elector.NodeID]*node{},
		leaders: map[lsn.Term]elector.NodeID{}, written: map[lsn.LSN]*version{}}
	for _, id := range voters {
		cluster.node(id).voter = true
	}
	return cluster
}

func (c *Cluster) node(id elector.NodeID) *node {
	n, ok := c.nodes[id]
	if !ok {
		n = &node{id: id, leaseUntil: longAgo, workUntil: longAgo}
		c.nodes[id] = n
		c.order = append(c.order, n)
	}
	return n
}

// Step is a step of a node, after the machine has made it and before its messages leave.
type Step struct {
	Now      time.Duration // true time, the same for all nodes
	Node     elector.NodeID
	Identity elector.Identity // of its disk; needed in an election with a record only
	Clock    Clock            // of the node
	Timing   *elector.Timing
	Effects  *elector.Effects
	State    *elector.State
	Lease    elector.Lease
}

// Clock is a node's clock.
type Clock interface {
	// When is the first true time at which the clock reads at or later.
	When(at elector.Time) time.Duration
}

// Step checks a step that an input caused, and returns the first rule that it breaks; nil if it
// breaks none.
func (c *Cluster) Step(s *Step, in elector.Input) *Violation {
	n := c.node(s.Node)
	n.identity = s.Identity
	leased := !c.checks.NoLeases
	counts, _ := c.counted(&n.accepted)
	r, _ := in.(elector.Received)
	// A node that does not vote promises nothing to a leader that it follows.
	if leased && (r.Message.Kind != elector.LeaderHeartbeat || counts(n)) {
		n.promises.hears(s, in)
	}
	if v := n.disk(c, in); v != nil {
		return v
	}
	if err := Consistent(s.State); err != nil {
		return Broken("state", "%s: %v", s.Node, err)
	}
	for _, t := range s.Effects.Transitions {
		v := c.Transition(s.Node, t)
		if v == nil && t.To == elector.Leader && !c.checks.NoLeases {
			v = c.elected(s.Node, t.Term)
		}
		if v != nil {
			return v
		}
	}
	if v := c.accepts(s, n); v != nil {
		return v
	}
	for i := range s.Effects.Messages {
		if v := c.says(s, n, &s.Effects.Messages[i]); v != nil {
			return v
		}
	}
	if leased {
		if v := n.remembers(s); v != nil {
			return v
		}
	}
	if v := c.holds(s, n); v != nil {
		return v
	}
	return c.shows(s, n)
}

// says checks a message that leaves a node: it is true, its term is reserved on disk, a vote is
// the only one of its term, a heartbeat that of the only leader, and no yes breaks a promise.
func (c *Cluster) says(s *Step, n *node, e *elector.Envelope) *Violation {
	m := &e.Message
	if err := True(s.State, e); err != nil {
		return Broken("scouting", "%s: %v", n.id, err)
	}
	if m.Term > n.durable.Reserved {
		return Broken("persist", "%s sent %q, but its disk has %+v", n.id, e, n.durable)
	}
	n.said = max(n.said, m.Term)
	if v := c.tells(s, n, e); v != nil {
		return v
	}
	switch {
	case m.Kind == elector.ElectionProposal:
		return n.voted(n.id, m.Term)
	case m.Kind == elector.LeaderHeartbeat:
		return c.Leads(n.id, m.Term)
	case m.Kind == elector.HeartbeatAck && !c.checks.NoLeases:
		return n.supports(s.Now, e.To, elector.LeaderHeartbeat, m)
	case m.Kind == elector.ElectionScoutingResponse && m.WillVote && !c.checks.NoLeases:
		return n.wouldVote(s.Now, e.To, m)
	case m.Kind == elector.ElectionProposalResponse && m.WillVote:
		if v := n.voted(e.To, m.ProposedTerm); v != nil || c.checks.NoLeases {
			return v
		}
		return n.supports(s.Now, e.To, elector.ElectionProposal, m)
	}
	return nil
}

// voted checks that a node votes at most once per term, over its whole life.
func (n *node) voted(candidate elector.NodeID, term lsn.Term) *Violation {
	if term < n.voteTerm || term == n.voteTerm && candidate != n.vote {
		return Broken("vote", "%s voted for %s in term %d after it voted for %s in term %d",
			n.id, candidate, term, n.vote, n.voteTerm)
	}
	n.voteTerm, n.vote = term, candidate
	return nil
}

// elected checks that a quorum voted for a leader in its very term.
func (c *Cluster) elected(id elector.NodeID, term lsn.Term) *Violation {
	votes := 0
	counts, quorum := c.counted(&c.node(id).accepted)
	for _, n := range c.order {
		if counts(n) && (n.id == id || n.promises.voted[id] == term) {
			votes++
		}
	}
	if votes >= quorum {
		return nil
	}
	return Broken("votes", "%s leads in term %d with %d votes of %d", id, term, votes, quorum)
}

// holds checks the lease after a step: that is when one begins, grows or ends. A quorum's
// promises last as long as it does. What was backed before is not counted again: when the voters
// change, those before back it (§15.9).
func (c *Cluster) holds(s *Step, n *node) *Violation {
	if s.Lease == n.lease {
		return nil
	}
	n.lease = s.Lease
	until, before := longAgo, n.leaseUntil
	if s.Lease != (elector.Lease{}) {
		until = s.Clock.When(s.Lease.End)
	}
	if v := c.Lease(s.Now, n.id, s.Lease.Term, until); v != nil || c.checks.NoLeases {
		return v
	}
	backed := func(by *elector.Record) (voters, quorum int) {
		counts, quorum := c.counted(by)
		for _, v := range c.order {
			// A lost disk breaks no promise: where it is the voter, not its name, nobody can.
			former := &node{id: v.id, identity: v.former, voter: v.voter}
			if (counts(v) || counts(former)) && (v == n || v.promises.given[n.id] >= until) {
				voters++
			}
		}
		return voters, quorum
	}
	old, was := backed(&n.before) // it may change the voters in the step that renews the lease
	backing, quorum := backed(&n.accepted)
	if until <= max(s.Now, before) || backing >= quorum || old >= was {
		return nil
	}
	return Broken("lease", "%s has a lease until %s, "+
		"but the promises of only %d voters last as long, not %d", n.id, until, backing, quorum)
}

// Booted notes that a process started on a disk that holds terms, which must be
// what the disk had before (I3). A disk that has forgotten the election holds only what is
// reserved.
func (c *Cluster) Booted(id elector.NodeID, terms elector.Terms) *Violation {
	n := c.node(id)
	if terms.Entered == 0 {
		n.durable.Entered = 0
	}
	n.role, n.term, n.leaseUntil = elector.Dormant, terms.Entered, longAgo
	return c.Durable(id, terms)
}

// Gone notes that the process of a node is no more, and its lease with it.
func (c *Cluster) Gone(id elector.NodeID) {
	n := c.node(id)
	n.lease, n.leaseUntil = elector.Lease{}, longAgo
}

// Wiped notes that a node lost its disk: it is a new node under an old name. Promises of the
// old one bind it, by its embargo.
func (c *Cluster) Wiped(id elector.NodeID) {
	n := c.node(id)
	*n = node{id: id, former: n.identity, voter: n.voter, leaseUntil: longAgo, workUntil: longAgo,
		promises: n.promises}
	clear(n.promises.voted)
}

// Transition checks that the protocol knows the transition, that it begins where
// the last one ended, that the term does not go backwards, and I1.
func (c *Cluster) Transition(id elector.NodeID, t elector.Transition) *Violation {
	n := c.node(id)
	switch {
	case !t.Legal():
		return Broken("transition", "%s made %q, which the protocol does not know", id, t)
	case t.From != n.role:
		return Broken("transition", "%s was %s and made %q", id, n.role, t)
	case t.Term < n.term:
		return Broken("I3", "%s was in term %d and made %q", id, n.term, t)
	}
	n.role, n.term = t.To, t.Term
	if t.To == elector.Leader {
		return c.Leads(id, t.Term)
	}
	return nil
}

// Leads checks I1: at most one leader per term.
func (c *Cluster) Leads(id elector.NodeID, term lsn.Term) *Violation {
	other, ok := c.leaders[term]
	if ok && other != id && !c.checks.TwoLeaders {
		return Broken("I1", "%s leads in term %d, in which %s led", id, term, other)
	}
	c.leaders[term] = id
	return nil
}

// Lease checks I2 for a lease that began, grew or ended: it is valid from now
// until a time on the clock that all calls share.
func (c *Cluster) Lease(
	now time.Duration, id elector.NodeID, term lsn.Term, until time.Duration,
) *Violation {
	c.node(id).leaseUntil = until
	other := c.other(id, now, until, func(n *node) time.Duration { return n.leaseUntil })
	if other == nil {
		return nil
	}
	return Broken("I2", "%s has a lease of term %d until %s, while that of %s runs until %s",
		id, term, until, other.id, other.leaseUntil)
}

// Work checks that guarded work of two nodes never overlaps, for work that began, goes on or is
// about to end: until is its end, at the latest, on the clock that all calls share.
func (c *Cluster) Work(now time.Duration, id elector.NodeID, until time.Duration) *Violation {
	c.node(id).workUntil = until
	other := c.other(id, now, until, func(n *node) time.Duration { return n.workUntil })
	if other == nil {
		return nil
	}
	return Broken("work", "guarded work of %s goes on until %s, while that of %s does until %s",
		id, until, other.id, other.workUntil)
}

// other is another node than id for which something goes on after now, as it does for id until
// a time; nil if there is none, or there may be one.
func (c *Cluster) other(
	id elector.NodeID, now, until time.Duration, end func(*node) time.Duration,
) *node {
	for _, n := range c.order {
		if until > now && n.id != id && end(n) > now && !c.checks.NoLeases {
			return n
		}
	}
	return nil
}

// Durable checks I3 for terms that reached the disk of a node: the entered one does not go
// down, and all that the node spoke for stay reserved.
func (c *Cluster) Durable(id elector.NodeID, terms elector.Terms) *Violation {
	n := c.node(id)
	if terms.Entered < n.durable.Entered || terms.Reserved < max(terms.Entered, n.said) {
		return Broken("I3", "the disk of %s had %+v and got %+v after it spoke for term %d",
			id, n.durable, terms, n.said)
	}
	n.durable = terms
	return nil
}

// Issued checks that no LSN which was issued under a valid lease comes after a
// newer one: a resource behind a fence would refuse the true leader.
func (c *Cluster) Issued(id elector.NodeID, n lsn.LSN) *Violation {
	if n.Compare(c.issued) <= 0 && !c.checks.NoLeases {
		return Broken("I3", "%s issued LSN %d.%d after %d.%d was issued",
			id, n.Term, n.Counter, c.issued.Term, c.issued.Counter)
	}
	c.issued = n
	return nil
}
