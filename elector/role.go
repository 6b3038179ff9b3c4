package elector

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bmqelect/bmqelect/lsn"
)

// Role is what a node is in an election.
type Role uint8

// The roles. DORMANT is a node that has not started or has stopped.
const (
	Dormant Role = iota
	Follower
	Candidate
	Leader
)

var roleNames = [...]string{"DORMANT", "FOLLOWER", "CANDIDATE", "LEADER"}

// String returns the role in capitals.
func (r Role) String() string { return nameOf(roleNames[:], r, "ROLE") }

// nameOf returns the name of a value of an enum, or what and its number if it has none.
func nameOf[T ~uint8](names []string, value T, what string) string {
	if int(value) < len(names) {
		return names[value]
	}
	return fmt.Sprintf("%s(%d)", what, uint8(value))
}

// Reason says why a transition happened. It is part of the API.
type Reason uint8

// The protocol's reasons, and after Stopped those of the transitions that the
// protocol leaves without one.
const (
	ReasonNone Reason = iota
	Started
	LeaderNoHeartbeat
	LeaderUnavailable
	LeaderPreempted
	ElectionPreempted
	QuorumNotAchieved
	LeaseExpired
	Transferred
	Stopped
	LeaderFound // a heartbeat made this node follow its sender
	LeaderCeded // the leader or the awaited one gave up, naming no successor
	Proposed    // a quorum would vote (or nobody is asked): the node proposes
	Elected     // a quorum voted: the node leads
	Reaffirmed  // a quorum voted again: the leader goes on in a higher term
	Resigned    // the leader or candidate gave up: told to, or its application cannot lead
)

var reasonNames = [...]string{
	"NONE", "STARTED", "LEADER_NO_HEARTBEAT", "LEADER_UNAVAILABLE", "LEADER_PREEMPTED",
	"ELECTION_PREEMPTED", "QUORUM_NOT_ACHIEVED", "LEASE_EXPIRED", "TRANSFERRED", "STOPPED",
	"LEADER_FOUND", "LEADER_CEDED", "PROPOSED", "ELECTED", "REAFFIRMED", "RESIGNED",
}

// Valid reports whether r is one of the reasons, ReasonNone among them.
func (r Reason) Valid() bool { return int(r) < len(reasonNames) }

// String returns the reason in capitals with underscores.
func (r Reason) String() string { return nameOf(reasonNames[:], r, "REASON") }

// Transition is a change of what the node is, or of the leadership that it
// holds or follows.
type Transition struct {
	From, To Role
	Reason   Reason
	Term     lsn.Term // of the leadership that the node now holds or follows; without one its own
	Leader   NodeID   // the leader after it; "" for none
	Peer     NodeID   // the node that caused it; "" if none did
}

// String returns the transition on one line, for example
// "FOLLOWER -> CANDIDATE PROPOSED term=3".
func (t Transition) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s -> %s %s term=%d", t.From, t.To, t.Reason, t.Term)
	if t.Leader != "" {
		fmt.Fprintf(&b, " leader=%s", t.Leader)
	}
	if t.Peer != "" {
		fmt.Fprintf(&b, " peer=%s", t.Peer)
	}
	return b.String()
}

// legal lists every transition that there is, by its roles, with its reasons.
var legal = map[[2]Role][]Reason{
	{Dormant, Follower}: {Started},
	{Follower, Follower}: {
		LeaderFound, Reaffirmed, LeaderNoHeartbeat, LeaderUnavailable, LeaderCeded, Transferred,
		LeaderPreempted,
	},
	{Follower, Candidate}: {Proposed},
	{Candidate, Leader}:   {Elected},
	{Candidate, Follower}: {ElectionPreempted, QuorumNotAchieved, Resigned},
	{Leader, Leader}:      {Reaffirmed},
	{Leader, Follower}:    {LeaseExpired, LeaderPreempted, Transferred, Resigned},
	{Follower, Dormant}:   {Stopped},
	{Candidate, Dormant}:  {Stopped},
	{Leader, Dormant}:     {Stopped},
}

// Legal reports whether the protocol knows such a transition: its roles with its reason.
func (t Transition) Legal() bool {
	return slices.Contains(legal[[2]Role{t.From, t.To}], t.Reason)
}
