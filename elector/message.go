package elector

import (
	"fmt"
	"strings"
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

// The messages of the protocol, under the article's names.
const (
	kindInvalid Kind = iota
	ElectionScouting
	ElectionScoutingResponse
	ElectionProposal
	ElectionProposalResponse
	LeaderHeartbeat
	HeartbeatAck
	InvalidHeartbeat
	LeadershipCession
	NodeUnavailable
	RecordOffer
	RecordRequest
	RecordAck
	kindEnd
)

var kindNames = [kindEnd]string{
	"Invalid", "ElectionScouting", "ElectionScoutingResponse", "ElectionProposal",
	"ElectionProposalResponse", "LeaderHeartbeat", "HeartbeatAck", "InvalidHeartbeat",
	"LeadershipCession", "NodeUnavailable", "RecordOffer", "RecordRequest", "RecordAck",
}

// String returns the protocol's name of the message.
func (k Kind) String() string { return nameOf(kindNames[:], k, "Kind") }

// Valid reports whether k is a message of the protocol.
func (k Kind) Valid() bool { return k > kindInvalid && k < kindEnd }

// Message is any message of the protocol: one flat value, so that it can be
// compared, copied, queued and encoded without allocation. Kind says which of
// the fields mean something; the others are zero.
type Message struct {
	Kind Kind

	// ElectionScoutingResponse, ElectionProposalResponse.
	WillVote bool
	Cause    scouting.Cause // of a no

	// HeartbeatAck. The small fields stand together, so that a message is short.
	MayStand bool // the sender may stand for election
	Cold     bool // the application of the sender is not prepared to lead yet
	Founded  bool // see Lineage
	// Reach is the number of voters that the sender has links to, itself included; 0 from an older
	// build, which does not say.
	Reach uint8

	// Term is the term that the message speaks for: the sender's own, except that a leader
	// which re-affirms itself goes on under its old one, and that an answer tells the highest
	// term in which the sender may have voted.
	Term lsn.Term

	// ElectionScouting and its response.
	ProposedTerm lsn.Term // the term that the asker would propose
	Round        uint64   // identifies the asker's scouting round; echoed
	// Priority is the sender's, also in HeartbeatAck; the response echoes the asker's.
	Priority int

	// ElectionScoutingResponse, ElectionProposalResponse.
	Leader     NodeID        // hint with a no: the leader that the refuser perceives
	LeaderTerm lsn.Term      // that leader's term
	RetryAfter time.Duration // with a no that only time turns into a yes: ask again then

	// LeaderHeartbeat, HeartbeatAck; SentAt also in ElectionProposal and its
	// response, where it is echoed. SentAt is a reading of the clock of the node
	// that first sent it and means nothing to others.
	Sequence uint64
	SentAt   Time
	LSN      lsn.LSN // newest issued (heartbeat), newest seen (ack)
	// Period is in LeaderHeartbeat how long after this one was scheduled the next one is, at
	// most; in HeartbeatAck the period that the sender needs (§14.3), 0 for none. It is 0 from an
	// older build. Period and Late travel as whole microseconds.
	Period time.Duration
	// Late is in LeaderHeartbeat how long before SentAt it was scheduled to be sent (§14.1).
	Late time.Duration

	// Successor is in LeadershipCession who should stand next, "" for anyone; in
	// LeaderHeartbeat who is first in line (§3.14), "" for nobody or from an older build.
	Successor NodeID

	// Record is the LSN of a record, zero in an election without one. In ElectionScouting,
	// ElectionProposal and RecordRequest it is that of the newest which the sender accepted; in a
	// yes it echoes the asker's; in a no it is the refuser's, if that is newer than the asker's; in
	// LeaderHeartbeat it is that of the leader's newest; in HeartbeatAck and RecordAck that of the
	// newest on the sender's disk; in RecordOffer that of Offer.
	Record lsn.LSN
	// Lineage and Founded are those of Offer, in other messages with a Record of the newest that the
	// sender accepted: §15.14.
	Lineage Identity
	// Offer is the record in RecordOffer; it must not be changed.
	Offer *Record
	// Committed is in LeaderHeartbeat the LSN of the newest committed record.
	Committed lsn.LSN
	// Entered is in HeartbeatAck and RecordAck the highest term in which the sender may have voted,
	// if it is above Term; 0 otherwise.
	Entered lsn.Term
}

// Envelope is a message on its way to one member, or to all.
type Envelope struct {
	To      NodeID // AllMembers for a broadcast
	Message Message
	// Repeats says that the heartbeat tells a member nothing new to whom beats of a pair say that
	// this leader leads: the driver need not send it there.
	Repeats bool
}

// AllMembers addresses every member that is connected, voters and observers.
// It is not a legal node ID.
const AllMembers NodeID = "*"

// String returns the envelope as "-> to: message".
func (e Envelope) String() string { return fmt.Sprintf("-> %s: %s", e.To, e.Message) }

// String returns the message on one line, with the fields that its kind uses.
// This form is the language of traces, golden files and bug reports.
func (m Message) String() string {
	w := words{}
	w.add("%s", m.Kind)
	w.add("term=%d", m.Term)
	switch m.Kind {
	case ElectionScouting:
		w.add("proposed=%d round=%x", m.ProposedTerm, m.Round)
		w.nonzero("priority", m.Priority)
		w.newest(m)
	case ElectionScoutingResponse:
		w.add("proposed=%d round=%x", m.ProposedTerm, m.Round)
		w.verdict(m)
	case ElectionProposal:
		w.add("sent=%s", m.SentAt)
		w.newest(m)
	case ElectionProposalResponse:
		w.add("proposed=%d sent=%s", m.ProposedTerm, m.SentAt)
		w.verdict(m)
	case LeaderHeartbeat:
		w.add("lsn=%d.%d seq=%d sent=%s", m.LSN.Term, m.LSN.Counter, m.Sequence, m.SentAt)
		w.name("successor", m.Successor)
		w.duration("period", m.Period)
		w.duration("late", m.Late)
		w.newest(m)
	case HeartbeatAck:
		w.add("lsn=%d.%d seq=%d sent=%s", m.LSN.Term, m.LSN.Counter, m.Sequence, m.SentAt)
		w.nonzero("priority", m.Priority)
		if !m.MayStand {
			w.add("not-candidate")
		}
		if m.Cold {
			w.add("cold")
		}
		w.nonzero("reach", int(m.Reach))
		w.duration("period", m.Period)
		w.newest(m)
	case LeadershipCession:
		w.name("successor", m.Successor)
	case RecordOffer:
		if m.Offer != nil {
			w.add("%s", *m.Offer)
		}
	case RecordRequest, RecordAck:
		w.newest(m)
	}
	return w.String()
}

// words are joined by spaces.
type words []string

func (w *words) add(format string, args ...any) { *w = append(*w, fmt.Sprintf(format, args...)) }

func (w *words) nonzero(name string, v int) {
	if v != 0 {
		w.add("%s=%d", name, v)
	}
}

func (w *words) duration(name string, d time.Duration) {
	if d != 0 {
		w.add("%s=%s", name, d)
	}
}

func (w *words) name(name string, id NodeID) {
	if id != "" {
		w.add("%s=%s", name, id)
	}
}

// verdict adds the yes, or the no with its cause and hints.
func (w *words) verdict(m Message) {
	if m.WillVote {
		w.add("yes")
		w.newest(m)
		return
	}
	w.add("no cause=%s", m.Cause)
	if m.Leader != "" {
		w.add("leader=%s leader-term=%d", m.Leader, m.LeaderTerm)
	}
	w.duration("retry-after", m.RetryAfter)
	w.newest(m)
}

// newest adds what the message says of the election's record; nothing if there is none.
func (w *words) newest(m Message) {
	if m.Record != (lsn.LSN{}) {
		w.add("record=%s", m.Record)
	}
	if m.Committed != (lsn.LSN{}) {
		w.add("committed=%s", m.Committed)
	}
	w.nonzero("entered", int(m.Entered))
}

func (w words) String() string { return strings.Join(w, " ") }
