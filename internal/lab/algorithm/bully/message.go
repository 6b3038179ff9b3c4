package bully

import (
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/lsn"
)

// Messages of Bully and UUID.
type (
	// Election tells a higher member of an election.
	Election struct {
		Epoch lsn.Term // with UUID
	}
	// Answer says that a higher member takes the election over.
	Answer struct{}
	// Coordinator says that the sender leads.
	Coordinator struct {
		Epoch lsn.Term // with UUID
	}
	// OK answers Election, Coordinator and MemberFailed with UUID.
	OK struct{}
	// Heartbeat says that the sender leads.
	Heartbeat struct{}
)

// Messages of UUID's detector.
type (
	// Ping asks whether the member is alive.
	Ping struct{ For algorithm.NodeID } // who wants to know it; "" for the sender
	// PingRequest asks for a Ping to a member.
	PingRequest struct{ Member algorithm.NodeID }
	// Ack says that a member is alive.
	Ack struct{ Member, For algorithm.NodeID }
	// MemberFailed says that a member is not.
	MemberFailed struct{ Member algorithm.NodeID }
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
func (Election) Name() string     { return "ELECTION" }
func (Answer) Name() string       { return "ANSWER" }
func (Coordinator) Name() string  { return "COORDINATOR" }
func (Heartbeat) Name() string    { return "HEARTBEAT" }
func (Ping) Name() string         { return "FD_PING" }
func (PingRequest) Name() string  { return "FD_PING_REQUEST" }
func (Ack) Name() string          { return "ACK" }
func (MemberFailed) Name() string { return "MEMBER_FAILED" }
