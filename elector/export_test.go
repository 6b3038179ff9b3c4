package elector

import "slices"

// What the tests in package elector_test need of the inside.

// Clone returns a machine in the same state that shares nothing mutable with m.
func (m *Machine) Clone() *Machine {
	return &Machine{cfg: m.cfg, state: m.state, held: slices.Clone(m.held)}
}

// Held returns the messages that wait for their term to be durable. The slice
// is the machine's own.
func (m *Machine) Held() []Envelope { return m.held }

// Valid reports whether the lease is valid at now.
func (l Lease) Valid(now Time) bool { return now < l.End }
