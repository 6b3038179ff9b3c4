package gossip

import (
	"fmt"

	"github.com/bmqelect/bmqelect/elector"
)

// Meta is what a node tells the others about itself. Encoded it takes at most
// 512 bytes, which Start and UpdateMeta check.
type Meta struct {
	MeshAddr  string // host:port of the node's mesh listener
	AdminAddr string // host:port of its admin server; may be empty
	Version   string // software version, for people
	Voter     bool   // what the node believes of itself: a claim, not an authority
	Candidate bool
	Priority  int
}

// State is what gossip believes of a member. It is a hint.
type State uint8

// The states of a member; the zero value is invalid.
const (
	StateAlive State = iota + 1 // answers probes, or is merely suspected
	StateLeft                   // said goodbye
	StateDead                   // stopped answering
)

// String returns the state in lower case.
func (s State) String() string {
	return name(int(s), "alive", "left", "dead")
}

// Member is what gossip knows of one node.
type Member struct {
	Node       elector.NodeID
	GossipAddr string // ip:port
	Meta
	State State
}

// EventKind says what happened to a member.
type EventKind uint8

// The kinds of event; the zero value is invalid.
const (
	Joined   EventKind = iota + 1 // appeared, or came back, perhaps at another address
	Updated                       // its metadata changed
	Left                          // said goodbye
	Failed                        // stopped answering
	Conflict                      // two running processes use its name
)

// String returns the kind in lower case.
func (k EventKind) String() string {
	return name(int(k), "joined", "updated", "left", "failed", "conflict")
}

// Event is a change of one other member. The local node is the subject of
// Conflict events only.
type Event struct {
	Kind   EventKind
	Member Member // in a Conflict, the process that the others go on using
	// OtherAddr is the gossip address of the second process in a Conflict.
	OtherAddr string
}

// name returns the i-th of names, counted from 1.
func name(i int, names ...string) string {
	if i < 1 || i > len(names) {
		return fmt.Sprintf("invalid(%d)", i)
	}
	return names[i-1]
}
