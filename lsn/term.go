package lsn

import "strconv"

// Term counts leaderships. It starts at 0 ("never took part in an election")
// and only ever rises; every leader has a term of its own.
type Term uint64

// MaxTerm is the highest term that may be proposed, adopted or learnt.
// PROTOCOL: a term of 2^63 or more is absurd; it is refused so that one
// corrupt message cannot become everyone's term.
const MaxTerm Term = 1<<63 - 1

// Valid reports whether t is at most MaxTerm.
func (t Term) Valid() bool { return t <= MaxTerm }

// Led reports whether t can be the term of a leadership: 1 to MaxTerm.
func (t Term) Led() bool { return t > 0 && t.Valid() }

// String returns t in decimal.
func (t Term) String() string { return strconv.FormatUint(uint64(t), 10) }
