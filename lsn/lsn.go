package lsn

import "cmp"

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
