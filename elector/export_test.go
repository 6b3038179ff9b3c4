package elector

import (
	"slices"

	"github.com/bmqelect/bmqelect/lsn"
)

// What the tests in package elector_test need of the inside.

// Clone returns a machine in the same state that shares nothing mutable with m.
func (m *Machine) Clone() *Machine {
	return &Machine{cfg: m.cfg, state: m.state, held: slices.Clone(m.held)}
}

// ReserveOnly lets m reserve n terms ahead, for tests of what waits for the disk.
func (m *Machine) ReserveOnly(n lsn.Term) *Machine {
	m.cfg.reserve = n
	return m
}

// Held returns the messages that wait for their term to be durable. The slice
// is the machine's own.
func (m *Machine) Held() []Envelope { return m.held }

// Valid reports whether the lease is valid at now.
func (l Lease) Valid(now Time) bool { return now < l.End }
