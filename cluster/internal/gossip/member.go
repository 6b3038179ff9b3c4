package gossip

import (
	"fmt"

	"github.com/bmqelect/bmqelect/elector"
)

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
	switch s {
	case StateAlive:
		return "alive"
	case StateLeft:
		return "left"
	case StateDead:
		return "dead"
	}
	return fmt.Sprintf("invalid(%d)", s)
}

// Member is what gossip knows of one node.
type Member struct {
	Node       elector.NodeID
	GossipAddr string // ip:port
	Meta
	State State
}
