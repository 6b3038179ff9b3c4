package lsn

import (
	"cmp"
	"errors"
	"fmt"
	"math"
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

// Next returns the LSN that follows l in the same term; an error that wraps
// ErrOverflow if the counter is at its end.
func (l LSN) Next() (LSN, error) {
	if l.Counter == math.MaxUint64 {
		return LSN{}, fmt.Errorf("lsn: next of %s: %w", l, ErrOverflow)
	}
	return LSN{Term: l.Term, Counter: l.Counter + 1}, nil
}
