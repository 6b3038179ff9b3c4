package raft

import (
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/lsn"
)

// Kind tells the messages apart.
type Kind uint8

// The messages.
const (
	RequestVote Kind = iota
	RequestVoteResponse
	PreVote
	PreVoteResponse
	AppendEntries // the heartbeat too
	AppendEntriesResponse
	TimeoutNow
	FortifyLeader // from here on with Fortified
	FortifyLeaderResponse
	DeFortifyLeader
)

// String is the dissertation's name.
func (k Kind) String() string {
	return [...]string{"RequestVote", "RequestVoteResponse", "PreVote", "PreVoteResponse",
		"AppendEntries", "AppendEntriesResponse", "TimeoutNow",
		"FortifyLeader", "FortifyLeaderResponse", "DeFortifyLeader"}[k]
}

// Vote is the answer to a candidate or pre-candidate.
type Vote uint8

// The answers.
const (
	NoVote Vote = iota // the message has none
	Granted
	Rejected
)

// String is "granted" or "rejected".
func (v Vote) String() string { return [...]string{"none", "granted", "rejected"}[v%3] }

// Message is any of the messages.
type Message struct {
	Kind Kind
	// Term is the sender's; PreVote, and PreVoteResponse if it is granted, have the one after it.
	Term        lsn.Term
	LastLogTerm lsn.Term // in RequestVote and PreVote: of the last entry of the sender's log
	Vote        Vote     // in the responses to these
	Transfer    bool     // in RequestVote: the leader wishes the candidate to win
}

// Timed is AppendEntries or its response in WithLease.
type Timed struct {
	Message
	Sent algorithm.Time // when the AppendEntries left, on the leader's clock
}

// InEpoch is FortifyLeaderResponse.
type InEpoch struct {
	Message
	Epoch uint64 // in which the sender's store supports the leader's
}

// open takes a message out of what has more than others.
func open(message algorithm.Message) (msg Message, sent algorithm.Time, epoch uint64) {
	switch m := message.(type) {
	case Timed:
		return m.Message, m.Sent, 0
	case InEpoch:
		return m.Message, 0, m.Epoch
	}
	return message.(Message), 0, 0
}
