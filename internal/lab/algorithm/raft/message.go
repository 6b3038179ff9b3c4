package raft

import (
	"fmt"

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
)

var kindNames = [...]string{"RequestVote", "RequestVoteResponse", "PreVote", "PreVoteResponse",
	"AppendEntries", "AppendEntriesResponse", "TimeoutNow"}

// Message is any of the messages.
type Message struct {
	Kind Kind
	// Term is the sender's. PreVote has the one after it, and PreVoteResponse, if it is
	// granted, repeats that.
	Term        lsn.Term
	LastLogTerm lsn.Term // in RequestVote and PreVote: of the last entry of the sender's log
	Granted     bool     // in the responses to RequestVote and PreVote
	Transfer    bool     // in RequestVote: the leader wishes the candidate to win
}

// Name is the dissertation's, or the number of a kind that it does not have.
func (m Message) Name() string {
	if int(m.Kind) >= len(kindNames) {
		return fmt.Sprintf("Kind%d", m.Kind)
	}
	return kindNames[m.Kind]
}

// String is for example "RequestVote term=3 lastLogTerm=2".
func (m Message) String() string {
	text := fmt.Sprintf("%s term=%d", m.Name(), m.Term)
	switch {
	case m.Kind == RequestVote || m.Kind == PreVote:
		text += fmt.Sprintf(" lastLogTerm=%d", m.LastLogTerm)
	case m.Granted:
		text += " granted"
	case m.Kind == RequestVoteResponse || m.Kind == PreVoteResponse:
		text += " rejected"
	}
	if m.Transfer {
		text += " transfer"
	}
	return text
}
