package elector

import (
	"fmt"
	"time"

	"github.com/bmqelect/bmqelect/lsn"
	"github.com/bmqelect/bmqelect/scouting"
)

// NodeID names a member of the cluster.
type NodeID = scouting.NodeID

// Time is a reading of one node's own monotonic clock, in nanoseconds from an
// arbitrary zero. Times of two nodes are never compared.
type Time int64

// Add returns t+d.
func (t Time) Add(d time.Duration) Time { return t + Time(d) }

// Sub returns the duration t-u.
func (t Time) Sub(u Time) time.Duration { return time.Duration(t - u) }

// String returns t as a duration since the clock's zero.
func (t Time) String() string { return time.Duration(t).String() }

// Kind tells the messages of the protocol apart.
type Kind uint8

// The messages of docs/protocol.md, under the article's names.
const (
	KindInvalid Kind = iota
	ElectionScouting
	ElectionScoutingResponse
	ElectionProposal
	ElectionProposalResponse
	LeaderHeartbeat
	HeartbeatAck
	InvalidHeartbeat
	LeadershipCession
	NodeUnavailable
	kindEnd
)

var kindNames = [kindEnd]string{
	"Invalid", "ElectionScouting", "ElectionScoutingResponse", "ElectionProposal",
	"ElectionProposalResponse", "LeaderHeartbeat", "HeartbeatAck", "InvalidHeartbeat",
	"LeadershipCession", "NodeUnavailable",
}

// String returns the protocol's name of the message.
func (k Kind) String() string {
	if k < kindEnd {
		return kindNames[k]
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}

// Valid reports whether k is a message of the protocol.
func (k Kind) Valid() bool { return k > KindInvalid && k < kindEnd }

// Message is any message of the protocol: one flat value, so that it can be
// compared, copied, queued and encoded without allocation. Kind says which of
// the fields mean something; the others are zero.
type Message struct {
	Kind Kind
	// Term is the term that the message speaks for: the sender's own, except
	// that a leader which re-affirms itself goes on under its old one.
	Term lsn.Term

	// ElectionScouting and its response.
	ProposedTerm lsn.Term // the term that the asker would propose
	Round        uint64   // identifies the asker's scouting round; echoed
	Priority     int      // the sender's; also in HeartbeatAck

	// ElectionScoutingResponse, ElectionProposalResponse.
	WillVote   bool
	Cause      scouting.Cause // of a no
	Leader     NodeID         // hint with a no: the leader that the refuser perceives
	LeaderTerm lsn.Term       // that leader's term
	RetryAfter time.Duration  // with a no that time alone mends: ask again after this

	// LeaderHeartbeat, HeartbeatAck; SentAt also in ElectionProposal and its
	// response, where it is echoed. SentAt is a reading of the clock of the node
	// that first sent it and means nothing to others.
	Sequence  uint64
	SentAt    Time
	LSN       lsn.LSN // newest issued (heartbeat), newest seen (ack)
	Candidate bool    // HeartbeatAck: the sender may stand for election
	// Reach is in HeartbeatAck the number of voters that the sender has links to,
	// itself included; 0 from an older build, which does not say.
	Reach uint8

	Successor NodeID // LeadershipCession: who should stand next; "" for anyone
}

// Envelope is a message on its way to one member, or to all.
type Envelope struct {
	To      NodeID // AllMembers for a broadcast
	Message Message
}

// AllMembers addresses every member that is connected, voters and observers.
// It is not a legal node ID.
const AllMembers NodeID = "*"
