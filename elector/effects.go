package elector

import (
	"fmt"
	"strings"
	"time"

	"github.com/bmqelect/bmqelect/lsn"
)

// Effects is what a step asks its driver to do. StopWork comes first: no other node may
// learn that this one gives up before the guarded work knows. Persist and Messages may be
// carried out in any order. Its slices belong to the machine and are valid until its next
// step.
type Effects struct {
	// Persist is what to write to disk, in place of what was asked for before; the zero
	// Terms for nothing. When it is durable the driver steps the machine with Persisted. The
	// machine goes on meanwhile but keeps back every message that speaks for a term above
	// those that are reserved on disk, so a driver need not order anything itself.
	Persist Terms
	// Accept, if not zero, is a record to write in one transaction with Persist, in place of one
	// that was asked for before; the driver has its value, or that of the record on disk is the
	// same. A later Persist without a record leaves it wanted.
	Accept Record
	// Joined are the voters that the node counts from now on and did not before. The driver steps
	// LinkUp for those to which there is a link.
	Joined []NodeID
	// Messages may leave at once.
	Messages []Envelope
	// Transitions are the changes of role and of the leadership that the node
	// follows or holds, oldest first.
	Transitions []Transition
	// StopWork tells a leader's application that its guarded work must stop, and
	// that until Machine.Handover().End at the latest; Guard{false} says that it
	// has. It is set in one step of a handover, and never if no work is held.
	StopWork bool
	// Anomaly is something that should not happen; the zero Anomaly if nothing did.
	Anomaly Anomaly
	// Wake is when the machine wants the next Tick at the latest; Never if it
	// has no deadline.
	Wake Time
}

// reset keeps the memory of the slices. To build the zero Effects and copy it takes longer.
func (e *Effects) reset() {
	e.Messages, e.Transitions = e.Messages[:0], e.Transitions[:0]
	e.Persist, e.StopWork, e.Anomaly, e.Wake = Terms{}, false, Anomaly{}, 0
	e.Joined = nil
	if e.Accept.LSN.Term != 0 {
		e.Accept = Record{}
	}
}

// Terms is what a disk must know of a node's terms.
type Terms struct {
	Entered  lsn.Term // one that the node has been in: it starts there after a crash
	Reserved lsn.Term // it has voted in none above; Entered or more
}

// Never is later than any time.
const Never Time = 1<<63 - 1

// AnomalyKind tells anomalies apart. Its zero means that nothing was odd.
type AnomalyKind uint8

const (
	anomalyNone AnomalyKind = iota
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
	// AnomalyTermLeap: a voter's term is more than 2^32 above this node's, more than any
	// emergency raises it, or the terms of a minute rose too much. It was not believed.
	AnomalyTermLeap
	// AnomalyOtherLineage: the record of a peer, or the leadership of one without a record, does not
	// descend from the first record of this election. The message was ignored: §15.14.
	AnomalyOtherLineage
)

var anomalyNames = [...]string{
	"none", "absurd-term", "not-entitled", "two-leaders", "malformed", "term-leap",
	"other-lineage",
}

// String returns the anomaly's name.
func (k AnomalyKind) String() string { return nameOf(anomalyNames[:], k, "anomaly") }

// Anomaly is one odd thing that a step met.
type Anomaly struct {
	Kind    AnomalyKind
	Peer    NodeID
	Term    lsn.Term
	Msg     Kind
	Lineage Identity // of the message; zero if it tells of no record
}

// String returns the anomaly on one line.
func (a Anomaly) String() string {
	text := fmt.Sprintf("%s peer=%s term=%d message=%s", a.Kind, a.Peer, a.Term, a.Msg)
	if a.Kind == AnomalyOtherLineage {
		text += " lineage=" + a.Lineage.String()
	}
	return text
}

// String returns the effects, one a line, in the order in which a driver acts on them.
func (e Effects) String() string {
	var b strings.Builder
	for _, t := range e.Transitions {
		fmt.Fprintln(&b, t)
	}
	if e.Anomaly != (Anomaly{}) {
		fmt.Fprintf(&b, "anomaly %s\n", e.Anomaly)
	}
	if p := e.Persist; p != (Terms{}) {
		fmt.Fprintf(&b, "persist term=%d", p.Entered)
		if p.Reserved > p.Entered {
			fmt.Fprintf(&b, " reserved=%d", p.Reserved)
		}
		b.WriteString("\n")
	}
	if e.Accept != (Record{}) {
		fmt.Fprintf(&b, "accept %s\n", e.Accept)
	}
	if len(e.Joined) > 0 {
		fmt.Fprintf(&b, "joined %s\n", list(e.Joined))
	}
	for _, m := range e.Messages {
		fmt.Fprintln(&b, m)
	}
	if e.StopWork {
		fmt.Fprintln(&b, "stop work")
	}
	if e.Wake != Never {
		fmt.Fprintf(&b, "wake %s\n", time.Duration(e.Wake))
	}
	return b.String()
}
