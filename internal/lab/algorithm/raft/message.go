package raft

import (
	"cmp"
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
	Term lsn.Term
	// Log is the end of the sender's log in RequestVote, PreVote and AppendEntries; in
	// AppendEntriesResponse how far it is the leader's, zero to a leader of a lower term.
	Log      Position
	Granted  bool // in the responses to RequestVote and PreVote
	Transfer bool // in RequestVote: the leader wishes the candidate to win
}

// Name is the dissertation's.
func (m Message) Name() string { return kindNames[m.Kind] }

// String is for example "RequestVote term=3 log=2.7".
func (m Message) String() string {
	text := fmt.Sprintf("%s term=%d", m.Name(), m.Term)
	switch {
	case m.Kind == TimeoutNow:
	case m.Granted:
		text += " granted"
	case m.Kind == RequestVoteResponse || m.Kind == PreVoteResponse:
		text += " rejected"
	default:
		text += " log=" + m.Log.String()
	}
	if m.Transfer {
		text += " transfer"
	}
	return text
}

// Position is that of a log's last entry. The zero Position is an empty log's.
type Position struct {
	Term  lsn.Term // of the leader that appended it
	Index uint64   // from 1
}

func (p Position) compare(q Position) int {
	return cmp.Or(cmp.Compare(p.Term, q.Term), cmp.Compare(p.Index, q.Index))
}

// String is the term, a dot and the index.
func (p Position) String() string { return fmt.Sprintf("%d.%d", p.Term, p.Index) }
