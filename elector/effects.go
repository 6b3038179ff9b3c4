package elector

import (
	"github.com/bmqelect/bmqelect/lsn"
)

// Effects is what a step asks its driver to do, in this order: persist,
// send, tell, stop work, and call again by Wake. Its slices belong to the machine and are
// valid until its next step.
type Effects struct {
	// Persist is the term to write to disk; 0 for none. When it is durable the
	// driver steps the machine with Persisted. The machine goes on meanwhile but
	// keeps back every message that speaks for a term that is not durable yet, so
	// a driver need not order anything itself.
	Persist lsn.Term
	// Messages may leave at once.
	Messages []Envelope
	// Transitions are the changes of role and of the leadership that the node
	// follows or holds, oldest first.
	Transitions []Transition
	// StopWork tells a leader's application that its guarded work must stop, and
	// that until Machine.Handover().End at the latest; Guard{false} says that it
	// has. It is set in one step of a handover, and never if no work is held.
	StopWork bool
	// Anomaly is something that should not happen; Kind is AnomalyNone if nothing did.
	Anomaly Anomaly
	// Wake is when the machine wants the next Tick at the latest; Never if it
	// has no deadline.
	Wake Time
}

// Never is later than any time.
const Never Time = 1<<63 - 1

// AnomalyKind tells anomalies apart.
type AnomalyKind uint8

const (
	// AnomalyNone means that nothing was odd.
	AnomalyNone AnomalyKind = iota
	// AnomalyAbsurdTerm: a peer sent a term of 2^63 or more, or 0 where a term
	// is meant. The message was refused; the driver closes the link.
	AnomalyAbsurdTerm
	// AnomalyNotEntitled: a peer without a vote, or an unknown one, sent what
	// only voters may send. The message was ignored.
	AnomalyNotEntitled
	// AnomalyTwoLeaders: another node leads in this leader's own term. This node
	// stepped down and stands again only in a higher term.
	AnomalyTwoLeaders
	// AnomalyMalformed: a message of an unknown kind, or one that no correct
	// node sends (an echo of what was never sent). It was ignored.
	AnomalyMalformed
	// AnomalyTermLeap: a voter's term is more than 2^32 above this node's, more
	// than any emergency raises it. No message raises a term by more than that, so
	// that none can use up the terms: see docs/protocol.md.
	AnomalyTermLeap
)

// String returns the anomaly's name.
func (k AnomalyKind) String() string {
	switch k {
	case AnomalyNone:
		return "none"
	case AnomalyAbsurdTerm:
		return "absurd-term"
	case AnomalyNotEntitled:
		return "not-entitled"
	case AnomalyTwoLeaders:
		return "two-leaders"
	case AnomalyMalformed:
		return "malformed"
	case AnomalyTermLeap:
		return "term-leap"
	}
	return "invalid"
}

// Anomaly is one odd thing that a step met.
type Anomaly struct {
	Kind AnomalyKind
	Peer NodeID
	Term lsn.Term
	Msg  Kind
}
