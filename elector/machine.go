package elector

import (
	"cmp"
	"slices"

	"github.com/bmqelect/bmqelect/lsn"
	"github.com/bmqelect/bmqelect/scouting"
)

// Machine is one node's part in one election.
type Machine struct {
	cfg    *resolved
	state  State
	held   []Envelope // speak for a term that is not durable yet
	eff    Effects
	random uint64 // entropy of the running step
}

// resolved is a Config in the form that the machine works with; it never changes.
type resolved struct {
	Config
	voters  []NodeID // sorted; a voter's index here is its number in Voters sets
	self    int      // this node's index; -1 for an observer
	quorum  int
	mayVote bool // is a voter
}

// New returns a DORMANT machine; step it with Start. It returns a *ConfigError
// that names every violated rule if cfg is not valid.
func New(cfg Config) (*Machine, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	voters := slices.Sorted(slices.Values(cfg.Voters))
	self, mayVote := slices.BinarySearch(voters, cfg.Self)
	if !mayVote {
		self = -1
	}
	cfg.Voters = voters
	r := &resolved{Config: cfg, voters: voters, self: self, quorum: cfg.QuorumSize(), mayVote: mayVote}
	return &Machine{cfg: r}, nil
}

// Clone returns a machine in the same state that shares nothing mutable with m.
func (m *Machine) Clone() *Machine {
	return &Machine{cfg: m.cfg, state: m.state, held: slices.Clone(m.held)}
}

// State returns what the machine remembers, for hashing and comparing.
func (m *Machine) State() State { return m.state }

// Held returns the messages that wait for their term to be durable. The slice
// is the machine's own.
func (m *Machine) Held() []Envelope { return m.held }

// Step tells the machine that in happened at the given moment, and returns what
// to do about it. The effects' slices are valid until the next Step.
func (m *Machine) Step(at Moment, in Input) Effects {
	m.eff = Effects{Messages: m.eff.Messages[:0], Transitions: m.eff.Transitions[:0]}
	m.state.Now = max(at.Now, m.state.Now, 1)
	m.random = at.Entropy

	// A leader that slept past its lease finds out before it does anything else.
	m.checkLease()
	m.dispatch(in)
	m.expire()
	m.leaveIfTold()
	m.eff.Wake = m.nextDeadline()
	return m.eff
}

func (m *Machine) dispatch(in Input) {
	switch in := in.(type) {
	case Start:
		m.start(in)
	case Received:
		m.receive(in.From, &in.Message)
	case LinkUp:
		m.linkUp(in.Peer)
	case LinkDown:
		m.linkDown(in.Peer)
	case Died:
		m.died(in.Peer)
	case Persisted:
		m.persisted(in.Term)
	case Issued:
		m.issued(in.LSN)
	case Eligible:
		m.eligible(in.Able)
	case Guard:
		m.guard(in.Held)
	case Transfer:
		m.transfer(in.To)
	case Resign:
		m.resign(in.Rest)
	case Stop:
		m.stop(in.Abrupt)
	}
}

// voter returns the index of a voter, and whether id is one.
func (m *Machine) voter(id NodeID) (int, bool) {
	return slices.BinarySearchFunc(m.cfg.voters, id, cmp.Compare[NodeID])
}

func (m *Machine) rank() scouting.Rank {
	return scouting.Rank{Priority: m.cfg.Priority, Node: m.cfg.Self}
}

// start begins taking part as a FOLLOWER that looks for an existing leader first.
func (m *Machine) start(in Start) {
	s := &m.state
	if s.Role != Dormant {
		return
	}
	s.Term, s.Durable, s.Vote = in.Term, in.Term, ""
	if !m.alone() {
		// It may have promised its vote before a crash; whatever it promised has
		// lapsed after this. A first boot is no exception: it may be the second of
		// a node that lost its disk, and the initial wait is no shorter anyway.
		s.EmbargoEnd = s.Now.Add(m.cfg.Timing.Promise())
	}
	m.become(Follower, Started, "")
	if m.alone() {
		m.stand()
		return
	}
	s.Follower.StandAt = s.Now.Add(m.cfg.Timing.InitialWait)
	s.Follower.Discovering = true
}

// alone reports whether this node is the only voter: there is nobody to
// discover, to wait for or to have promised anything to.
func (m *Machine) alone() bool { return m.cfg.mayVote && len(m.cfg.voters) == 1 }

// issued notes the newest LSN that the application issued as leader.
func (m *Machine) issued(n lsn.LSN) {
	s := &m.state
	if s.Role == Leader && n.Term == s.Leader.Term && n.Compare(s.SeenLSN) > 0 {
		s.SeenLSN = n
	}
}
