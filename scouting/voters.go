package scouting

import (
	"cmp"
	"math/bits"
)

// NodeID names a member of the cluster. IDs are unique within a cluster and
// order as strings do.
type NodeID string

// MaxVoters is the largest number of voters that one election may have. Votes
// are kept as bits of a word, so that an elector's state is one comparable value.
const MaxVoters = 32

// Voters is a set of voters, each named by its index in the sorted voter list
// (0 to MaxVoters-1). The zero value is the empty set.
type Voters uint32

// With returns v with voter i added; adding a voter twice changes nothing, so
// nobody's vote counts twice.
func (v Voters) With(i int) Voters { return v | 1<<uint(i) }

// Without returns v with voter i removed.
func (v Voters) Without(i int) Voters { return v &^ (1 << uint(i)) }

// Has reports whether voter i is in the set.
func (v Voters) Has(i int) bool { return v&(1<<uint(i)) != 0 }

// Count returns the number of voters in the set.
func (v Voters) Count() int { return bits.OnesCount32(uint32(v)) }

// Rank orders nodes that would stand at the same moment: by priority, then by
// node ID (the article's selfNode < proposedNode).
type Rank struct {
	Priority int
	Node     NodeID
}

// Compare returns -1, 0 or +1 as r ranks below, equal to or above o.
func (r Rank) Compare(o Rank) int {
	if c := cmp.Compare(r.Priority, o.Priority); c != 0 {
		return c
	}
	return cmp.Compare(r.Node, o.Node)
}
