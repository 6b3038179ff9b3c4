package elector

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bmqelect/bmqelect/lsn"
)

// Transition is a change of what the node is, or of the leadership that it
// holds or follows.
type Transition struct {
	From, To Role
	Reason   Reason
	Term     lsn.Term // of the leadership that the node now holds or follows, or else its own
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

// edge is a change of role.
type edge struct{ from, to Role }

// legal lists every transition that there is, with its reasons.
var legal = map[edge][]Reason{
	{Dormant, Follower}:   {Started},
	{Follower, Follower}:  {LeaderFound, Reaffirmed, LeaderNoHeartbeat, LeaderUnavailable, LeaderCeded, Transferred, LeaderPreempted},
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
	return slices.Contains(legal[edge{t.From, t.To}], t.Reason)
}
