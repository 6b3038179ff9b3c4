// Package lsn is Leader Sequence Numbers: fencing tokens that say which of two
// things a leader issued later, even if the two came from different leaders.
//
// An LSN is a leader's Term and a Counter that starts again with every term. Its
// text ("5.2") is what people, JSON and durable notes see; its 16 bytes sort as
// LSNs do. A Sequencer issues them on the leader's side; a Fence, on the side
// of the resource that leaders write to, refuses those of a leader that has been
// replaced and does not know it yet.
//
// The package does not know who leads: whoever owns a Sequencer must begin and
// end its leaderships. It does no I/O; whoever needs a Fence to survive a
// restart saves its Newest.
//
// Term and LSN are plain values. Sequencer and Fence are safe for concurrent use
// and must not be copied. What always holds: a Sequencer never issues an LSN
// twice or out of order, and a Fence's Newest never goes back.
package lsn

import (
	"cmp"
	"errors"
	"strconv"
)

// ErrOverflow says that a counter has reached its end: nothing more can be
// issued in that term. The way on is a new leadership.
var ErrOverflow = errors.New("counter exhausted, a new term is needed")

// LSN is a Leader Sequence Number: the Counter-th message that the leader of
// Term issued to its followers. The zero LSN precedes all others.
//
// LSN is comparable with ==; the order is that of Compare.
type LSN struct {
	Term    Term
	Counter uint64
}

// Compare returns -1, 0 or +1 as l precedes, equals or follows o: by term
// first, by counter within a term.
func (l LSN) Compare(o LSN) int {
	if c := cmp.Compare(l.Term, o.Term); c != 0 {
		return c
	}
	return cmp.Compare(l.Counter, o.Counter)
}

// Less reports whether l precedes o.
func (l LSN) Less(o LSN) bool { return l.Compare(o) < 0 }

// IsZero reports whether l is the zero LSN, which no leader issues.
func (l LSN) IsZero() bool { return l == LSN{} }

// Term counts leaderships. It starts at 0 ("never took part in an election")
// and only ever rises; every leader has a term of its own.
type Term uint64

// MaxTerm is the highest term that may be proposed, adopted or learnt.
// §2.2: a higher one is refused, so that one corrupt message cannot become everyone's term.
const MaxTerm Term = 1<<63 - 1

// Valid reports whether t is at most MaxTerm.
func (t Term) Valid() bool { return t <= MaxTerm }

// Led reports whether t can be the term of a leadership: 1 to MaxTerm.
func (t Term) Led() bool { return t > 0 && t.Valid() }

// String returns t in decimal.
func (t Term) String() string { return strconv.FormatUint(uint64(t), 10) }
