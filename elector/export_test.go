package elector

import "slices"

// Access to internals for the tests in package elector_test.

// Clone returns a machine in the same state that shares nothing mutable with m.
func (m *Machine) Clone() *Machine { return m.At(m.State(), m.held) }

// At returns a machine of m's configuration that is in another state, and holds other messages.
func (m *Machine) At(s State, held []Envelope) *Machine {
	at := &Machine{cfg: m.cfg, eff: &Effects{}, state: keep(&s), held: slices.Clone(held)}
	at.resolve()
	return at
}

// keep returns s in the form in which a machine keeps it.
func keep(s *State) state {
	k := state{Common: s.Common}
	k.part()
	switch s.Role {
	case Follower:
		*k.Follower = s.Follower
	case Candidate:
		*k.Candidate = s.Candidate
	case Leader:
		*k.Leader = s.Leader
	}
	return k
}

// Held returns the messages that wait for their term to be durable. The slice
// is the machine's own.
func (m *Machine) Held() []Envelope { return m.held }

// LeaseFollows reports whether the lease of a leader follows the last change of voters: §15.9.
func (m *Machine) LeaseFollows() bool { return m.leaseFollows() }

// Valid reports whether the lease is valid at now.
func (l Lease) Valid(now Time) bool { return now < l.End }

// NobodyIsUntouched reports whether no machine has written into the part of a role that it is not
// in.
func NobodyIsUntouched() bool { return nobody == State{} }
