package spec

import (
	"time"

	"github.com/bmqelect/bmqelect/elector"
)

// Cluster holds every step of every node of a cluster against the protocol: what each may say,
// by what it has heard and said before, whatever its machine believes. It is not safe for
// concurrent use.
type Cluster struct {
	*Checker
	promises *promises // nil where the cluster has no leases
	leases   map[elector.NodeID]elector.Lease
}

// Step is a step of a node, after the machine has made it and before its messages leave.
type Step struct {
	Now     time.Duration // true time, the same for all nodes; steps come in its order
	Node    elector.NodeID
	Clock   Clock // of the node
	Timing  *elector.Timing
	In      elector.Input
	Effects *elector.Effects
	State   *elector.State
	Lease   elector.Lease
}

// Clock is a node's clock.
type Clock interface {
	// When is the first true time at which the clock reads at or later.
	When(at elector.Time) time.Duration
}

// NewCluster returns the specification of a cluster of which nothing has happened yet. All
// voters have the configuration of one of them, but for Self.
func NewCluster(cfg elector.Config, c Checks) *Cluster {
	spec := &Cluster{Checker: NewChecker(c), leases: map[elector.NodeID]elector.Lease{}}
	if !c.NoLeases {
		spec.promises = newPromises(cfg)
	}
	return spec
}

// Wiped notes that a node lost its disk: it is a new node under an old name.
func (c *Cluster) Wiped(id elector.NodeID) {
	c.Checker.Wiped(id)
	if c.promises != nil {
		c.promises.wiped(id)
	}
}

// Gone notes that the process of a node is no more, and its lease with it.
func (c *Cluster) Gone(id elector.NodeID) {
	c.Checker.Gone(id)
	delete(c.leases, id)
}

// Step checks a step, and returns the first rule that it breaks; nil if it breaks none.
func (c *Cluster) Step(s *Step) *Violation {
	if c.promises != nil {
		// §6.1: on the voter's own clock.
		c.promises.hears(s.Now, s.Node, s.In, s.Clock.When(s.State.Now.Add(s.Timing.Promise())))
	}
	if err := Consistent(s.State); err != nil {
		return Broken("state", "%s: %v", s.Node, err)
	}
	for _, t := range s.Effects.Transitions {
		if v := c.Transition(s.Node, t); v != nil {
			return v
		}
		if t.To == elector.Leader && c.promises != nil {
			if v := c.promises.elected(s.Node, t.Term); v != nil {
				return v
			}
		}
	}
	for i := range s.Effects.Messages {
		if v := c.says(s, &s.Effects.Messages[i]); v != nil {
			return v
		}
	}
	if p := &s.State.Promise; c.promises != nil {
		v := c.promises.remembers(s.Now, s.Node, p.To, p.Term, s.Clock.When(p.Until),
			s.Clock.When(s.State.EmbargoEnd))
		if v != nil {
			return v
		}
	}
	return c.holds(s)
}

// says checks a message that leaves a node.
func (c *Cluster) says(s *Step, e *elector.Envelope) *Violation {
	if err := True(s.State, e); err != nil {
		return Broken("scouting", "%s: %v", s.Node, err)
	}
	if v := c.Sent(s.Node, e); v != nil || c.promises == nil {
		return v
	}
	return c.promises.sent(s.Now, s.Node, e)
}

// holds checks the lease after a step: that is when one begins, grows or ends.
func (c *Cluster) holds(s *Step) *Violation {
	if s.Lease == c.leases[s.Node] {
		return nil
	}
	c.leases[s.Node] = s.Lease
	until := longAgo
	if s.Lease != (elector.Lease{}) {
		until = s.Clock.When(s.Lease.End)
	}
	if v := c.Lease(s.Now, s.Node, s.Lease.Term, until); v != nil || c.promises == nil {
		return v
	}
	return c.promises.backs(s.Now, s.Node, until)
}
