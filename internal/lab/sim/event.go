package sim

import (
	"fmt"
	"strings"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/lsn"
)

// EventKind tells events apart.
type EventKind uint8

// The kinds of events, with the fields of Event that they use besides At.
const (
	_                EventKind = iota
	EventStarted               // Node, Term: the one that its disk says it entered
	EventCrashed               // Node, Term: likewise
	EventWiped                 // Node: its disk is lost
	EventStopped               // Node: gracefully
	EventPaused                // Node
	EventResumed               // Node
	EventCut                   // Node to Peer: silence from now on
	EventHealed                // Node to Peer
	EventLinkFaults            // Node to Peer, Detail: Faults
	EventReset                 // the link of Node and Peer
	EventLinkUp                // Node, Peer: as Node sees it
	EventLinkDown              // Node, Peer, Detail: elector.Evidence
	EventDied                  // Node, Peer, Detail: elector.Proof
	EventSent                  // Node to Peer, Message, Number
	EventDelivered             // Node from Peer, Message, Number; a second time if it was doubled
	EventLost                  // Node to Peer, Message, Number
	EventTerm                  // Node, Term: it entered that
	EventDurable               // Node, Term: reserved on its disk, with all below it
	EventTransition            // Node, Transition, Why
	EventAnomaly               // Node, Peer, Detail: elector.Anomaly
	EventCommand               // Node, Peer: told to transfer to Peer
	EventResign                // Node: told to step down
	EventFit                   // Node: its application can lead
	EventUnfit                 // Node: it cannot
	EventWork                  // Node: its guarded work began
	EventWorkTold              // Node: that was told to stop
	EventWorkStopped           // Node: that has stopped
	EventTuned                 // Node, Peer, Detail: elector.Tuned, what it needs of its leader
	EventAsked                 // Node, Detail: elector.Publish or elector.ChangeVoters
	EventAccepted              // Node, Detail: elector.Record, the newest that it accepted
	EventShown                 // Node, Detail: elector.Record, the newest that it knows is committed
	eventKindEnd
)

var eventNames = [eventKindEnd]string{
	"invalid", "started", "crashed", "wiped", "stopped", "paused", "resumed", "cut", "healed",
	"faults", "reset", "link-up", "link-down", "died", "sent", "delivered", "lost", "term", "durable",
	"transition", "anomaly", "transfer",
	"resign", "fit", "unfit", "work", "work-told", "work-stopped",
	"tuned", "asked", "accepted", "shown",
}

// String returns the kind's name in lower case.
func (k EventKind) String() string { return eventNames[k] }

// Event is something that happened at a node. Kind says which fields mean something.
type Event struct {
	At         time.Duration // simulated time
	Kind       EventKind
	Node, Peer elector.NodeID
	Term       lsn.Term
	Message    algorithm.Message
	Number     int // of the message, from 1: all that are sent are counted
	Transition elector.Transition
	Why        string // of a transition, where its Reason does not say it
	Detail     any
}

// String returns the event on one line: the language of traces.
func (e *Event) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s %s", e.At, e.Node, e.Kind)
	if e.Peer != "" {
		fmt.Fprintf(&b, " %s", e.Peer)
	}
	switch e.Kind {
	case EventStarted, EventCrashed, EventTerm, EventDurable:
		fmt.Fprintf(&b, " term=%d", e.Term)
	case EventLinkDown, EventDied:
		fmt.Fprintf(&b, " %s", e.Detail)
	case EventSent, EventDelivered, EventLost:
		fmt.Fprintf(&b, ": %s", algorithm.Text(e.Message))
	case EventTransition:
		fmt.Fprintf(&b, ": %s", e.Transition)
		if e.Why != "" {
			fmt.Fprintf(&b, "; %s", e.Why)
		}
	case EventAnomaly, EventTuned, EventLinkFaults, EventAsked, EventAccepted, EventShown:
		fmt.Fprintf(&b, ": %+v", e.Detail)
	}
	return b.String()
}
