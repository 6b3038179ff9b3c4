package pair

import (
	"fmt"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/lsn"
)

// Beat says that the process which sent it lives, and that it is followed in what it knows of the
// followed set. It may be lost, copied and overtaken.
type Beat struct {
	Sequence uint64        // 1 for the first of a session; each is sent once
	SentAt   elector.Time  // by the sender's clock; it means nothing to others
	Period   time.Duration // how long after this one was scheduled the next one is, at most
	Late     time.Duration // how long before SentAt it was scheduled
	Revision uint64        // the newest change of the followed set that the sender has read
	Hash     uint64        // of the followed set at that revision
}

// Ack answers a beat.
type Ack struct {
	Sequence uint64        // echoed
	SentAt   elector.Time  // echoed
	Revision uint64        // of the followed set when the beat came
	Wanted   time.Duration // the longest period of beats that the sender needs; 0 for any
}

// What says what a Change does.
type What uint8

// The changes. The first four are of the followed set, and come from its owner. The others come
// from the other end.
const (
	whatInvalid What = iota
	Join             // a voter follows: it has promised
	Observe          // an observer follows
	Leave
	Empty  // all leave; it takes the place of changes that were lost
	Disown // the sender does not lead the election in that term
	Begin  // a change was lost: the owner is to empty the set, and to begin anew
	whatEnd
)

var whatNames = [whatEnd]string{"invalid", "join", "observe", "leave", "empty", "disown", "begin"}

// String returns the name in lower case.
func (w What) String() string {
	if w < whatEnd {
		return whatNames[w]
	}
	return fmt.Sprintf("what(%d)", uint8(w))
}

// Valid reports whether w is a change.
func (w What) Valid() bool { return w > whatInvalid && w < whatEnd }

// Change is a change of a followed set, or asks for one. Changes travel in order on the link.
type Change struct {
	What     What
	Revision uint64   // of the set after it: one more than before; 0 in Disown and Begin
	Group    string   // the election; "" in Empty and Begin
	Term     lsn.Term // of the leadership that is followed; 0 in Leave, Empty and Begin
}

// String returns the change on one line.
func (c Change) String() string {
	return fmt.Sprintf("%s %q term=%d revision=%d", c.What, c.Group, c.Term, c.Revision)
}
