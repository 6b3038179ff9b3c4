package bully

import (
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
func (Election) Name() string    { return "ELECTION" }
func (Answer) Name() string      { return "ANSWER" }
func (Coordinator) Name() string { return "COORDINATOR" }
func (OK) Name() string          { return "OK" }
func (Heartbeat) Name() string   { return "HEARTBEAT" }
