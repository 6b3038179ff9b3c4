package member

import (
	"math/bits"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
)

// MaxMembers is how many a Set can hold.
const MaxMembers = 128

// Set is a set of members by rank: of those that voted, answered, or have a link.
type Set [MaxMembers / 64]uint64

// Of is the set of those ranks.
func Of(ranks ...int) (s Set) {
	for _, rank := range ranks {
		s.Put(rank, true)
	}
	return s
}

// Put adds a member, or takes it out. Who is no member is never in it.
func (s *Set) Put(rank int, in bool) {
	switch {
	case rank < 0:
	case in:
		s[rank/64] |= 1 << (rank % 64)
	default:
		s[rank/64] &^= 1 << (rank % 64)
	}
}

// Has reports whether a member is in it.
func (s Set) Has(rank int) bool { return rank >= 0 && s[rank/64]&(1<<(rank%64)) != 0 }

// Count is how many are in it.
func (s Set) Count() (n int) {
	for _, word := range s {
		n += bits.OnesCount64(word)
	}
	return n
}

// Timer is when something is due. Its zero is not armed.
type Timer struct {
	at    algorithm.Time
	armed bool
}

// At is a timer that is due at a reading of the member's clock.
func At(t algorithm.Time) Timer { return Timer{at: t, armed: true} }

// After is a timer that is due after d.
func (m *Member) After(d time.Duration) Timer { return At(m.Now.Add(d)) }

// Due reports whether a timer is due, and disarms it then.
func (m *Member) Due(t *Timer) bool {
	if !t.armed || m.Now < t.at {
		return false
	}
	*t = Timer{}
	return true
}

// When is the time at which a timer is due; elector.Never if it is not armed.
func (t Timer) When() algorithm.Time {
	if !t.armed {
		return elector.Never
	}
	return t.at
}

// Earliest is when the first of the timers is due.
func Earliest(timers ...Timer) algorithm.Time {
	at := elector.Never
	for _, t := range timers {
		at = min(at, t.When())
	}
	return at
}
