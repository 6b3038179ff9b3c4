// Package audit keeps the journals of the coordinator's processes, and checks them:
// no two assignments of one partition may have been in force at once, and the
// order in which they were is that of their LSNs.
//
// A journal is a file of JSON lines that its process only appends to, over all of
// its starts. Times are by the wall clock: journals are compared if they come from
// one machine whose clock nobody has set meanwhile.
package audit

import (
	"time"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/lsn"
)

// Event is what a line tells of.
type Event string

// The events of a journal.
const (
	Started  Event = "started"  // the process: whatever it had in force has ended
	Assigned Event = "assigned" // by this node, as leader, to another or itself
	Begun    Event = "begun"    // this node has put an assignment in force
	Worked   Event = "worked"   // this node did something under it
	Ended    Event = "ended"    // it is in force no more
)

// Line is one line of a journal. All but Started concern one assignment, which its
// LSN names.
type Line struct {
	Time      time.Time      `json:"time"`
	Node      cluster.NodeID `json:"node"` // whose journal it is
	Event     Event          `json:"event"`
	Partition int            `json:"partition"`
	LSN       lsn.LSN        `json:"lsn,omitzero"`
	To        cluster.NodeID `json:"to,omitempty"`  // Assigned: to whom
	Why       string         `json:"why,omitempty"` // Ended
}
