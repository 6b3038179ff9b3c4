package elector

import "slices"

// Access to internals for the tests in package elector_test.

// Clone returns a machine in the same state that shares nothing mutable with m.
func (m *Machine) Clone() *Machine { return m.At(m.State(), m.Held()) }

// At returns a machine of m's configuration that is in another state, and holds other messages.
func (m *Machine) At(s State, held []Envelope) *Machine {
	at := m.Another(0)
	at.eff, at.quality = &Effects{}, nil
	for _, e := range held {
		at.hold(e)
	}
	k := &at.state
	k.Common, *k.rare(), *k.record(), k.Refused = s.Common, s.Rare, s.Record, &s.Refused
	at.resolve()
	k.part(0)
	*k.seek(), *k.writing() = s.Follower.seekState, s.Leader.Writing
	switch s.Role {
	case Follower:
		*k.Follower = s.Follower.followerState
	case Candidate:
		*k.Candidate = s.Candidate
	case Leader:
		*k.Leader = s.Leader.leaderState
	}
	if s.Role == Candidate || s.Role == Leader {
		k.By = slices.Clone(s.By[:len(at.set.voters)])
	}
	k.trim()
	return at
}

// Held returns the messages that wait for their term to be durable. The slice
// is the machine's own.
func (m *Machine) Held() []Envelope {
	if m.held == nil {
		return nil
	}
	return *m.held
}

// Wastes reports whether the machine has memory for a part that is zero.
func (m *Machine) Wastes() bool {
	s := &m.state
	return s.Rare != &nobody.Rare && *s.Rare == Rare{} ||
		s.Record != &nobody.Record && *s.Record == recordState{} ||
		s.Refused != &nobody.Refused && *s.Refused == question{} ||
		s.Seek != &nobody.Follower.seekState && *s.Seek == seekState{} ||
		s.Writing != &nobody.Leader.Writing && *s.Writing == writing{}
}

// LeaseFollows reports whether the lease of a leader follows the last change of voters: §15.9.
func (m *Machine) LeaseFollows() bool { return m.leaseFollows() }

// Valid reports whether the lease is valid at now.
func (l Lease) Valid(now Time) bool { return now < l.End }

// NobodyIsUntouched reports whether no machine has written into a part that it does not own.
func NobodyIsUntouched() bool { return *nobody == State{} }
