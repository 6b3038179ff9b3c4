package member

import (
	"fmt"

	"github.com/bmqelect/bmqelect/lsn"
)

// Ballot is a leadership's unique number: compared by N, then by Pid. The zero Ballot
// is below all others and nobody's.
type Ballot struct {
	N   uint64
	Pid uint64 // from 1; 0 for no ballot
}

// Above reports whether b is the higher one.
func (b Ballot) Above(c Ballot) bool { return b.N > c.N || b.N == c.N && b.Pid > c.Pid }

// Raise makes b the higher one of the two.
func (b *Ballot) Raise(to Ballot) {
	if to.Above(*b) {
		*b = to
	}
}

// String returns n.pid.
func (b Ballot) String() string { return fmt.Sprintf("%d.%d", b.N, b.Pid) }

// Pid is this member's: the higher, the more it is preferred.
func (m *Member) Pid() uint64 { return uint64(len(m.Cfg.Order) - m.Self) }

// Owner returns whose ballot it is, Nobody if it is of other voters, as it may be on an older disk,
// and its place among all ballots in their order: N times the number of voters, plus Pid.
func (m *Member) Owner(b Ballot) (rank int, term lsn.Term) {
	n := uint64(len(m.Cfg.Order))
	if rank = Nobody; 0 < b.Pid && b.Pid <= n {
		rank = int(n - b.Pid)
	}
	return rank, lsn.Term(b.N*n + b.Pid)
}
