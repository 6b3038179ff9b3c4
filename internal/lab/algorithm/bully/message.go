package bully

import (
	"fmt"

	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/lsn"
)

// Messages of Bully and UUID.
type (
	// Election tells a higher member of an election.
	Election struct {
		Epoch lsn.Term // of the round; 0 with Bully
	}
	// Answer says that a higher member takes the election over.
	Answer struct{}
	// Coordinator says that the sender leads.
	Coordinator struct {
		Epoch lsn.Term // of the round; 0 with Bully
	}
	// OK acknowledges a Coordinator.
	OK struct {
		Epoch lsn.Term // the Coordinator's
	}
	// Heartbeat says that the sender is alive; with Bully also that it leads.
	Heartbeat struct{}
)

// Procedures of Strict that are called at another member, and what they return. Number is
// that of the caller's phase; Return echoes it.
type (
	// AreYouUp asks a higher member whether it is alive.
	AreYouUp struct{ Number uint64 }
	// Halt stops a lower member until the caller says more.
	Halt struct{ Number uint64 }
	// NewCoordinator says that the caller coordinates from now on.
	NewCoordinator struct{ Number uint64 }
	// Ready ends the reorganization.
	Ready struct{ Number uint64 }
	// AreYouNormal asks whether the member is Normal with the caller as coordinator.
	AreYouNormal struct{ Number uint64 }
	// Return says that a procedure was executed.
	Return struct {
		Number uint64
		No     bool // the answer to AreYouNormal
	}
)

// Name is what the source calls the message.
func (Election) Name() string       { return "ELECTION" }
func (Answer) Name() string         { return "ANSWER" }
func (Coordinator) Name() string    { return "COORDINATOR" }
func (OK) Name() string             { return "OK" }
func (Heartbeat) Name() string      { return "HEARTBEAT" }
func (AreYouUp) Name() string       { return "AreYouUp" }
func (Halt) Name() string           { return "Halt" }
func (NewCoordinator) Name() string { return "NewCoordinator" }
func (Ready) Name() string          { return "Ready" }
func (AreYouNormal) Name() string   { return "AreYouNormal" }
func (Return) Name() string         { return "Return" }

// String is the message on one line.
func (m Election) String() string       { return text(m, "epoch", uint64(m.Epoch)) }
func (m Answer) String() string         { return m.Name() }
func (m Coordinator) String() string    { return text(m, "epoch", uint64(m.Epoch)) }
func (m OK) String() string             { return text(m, "epoch", uint64(m.Epoch)) }
func (m Heartbeat) String() string      { return m.Name() }
func (m AreYouUp) String() string       { return text(m, "number", m.Number) }
func (m Halt) String() string           { return text(m, "number", m.Number) }
func (m NewCoordinator) String() string { return text(m, "number", m.Number) }
func (m Ready) String() string          { return text(m, "number", m.Number) }
func (m AreYouNormal) String() string   { return text(m, "number", m.Number) }
func (m Return) String() string {
	if m.No {
		return text(m, "number", m.Number) + " no"
	}
	return text(m, "number", m.Number)
}

func text(m algorithm.Message, field string, value uint64) string {
	if value == 0 {
		return m.Name()
	}
	return fmt.Sprintf("%s %s=%d", m.Name(), field, value)
}
