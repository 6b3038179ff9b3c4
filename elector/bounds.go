package elector

import (
	"time"

	"github.com/bmqelect/bmqelect/lsn"
)

// Bounds are the constants of the rules about terms. Nodes of one election should have the
// same.
type Bounds struct {
	// Reserve is how many terms a node reserves on disk above its own (§2.4). It asks for more
	// when half of them are used. A failover uses one or two terms, so one failover in several
	// causes a write in the background. A crash skips the unused terms, and so does each further
	// crash before the next election: after some hundred million crashes that is a leap (§8.1).
	// With 0 no term is reserved ahead, and every vote waits for the disk.
	Reserve lsn.Term
	// Ahead is how far above its own terms a node reserves because of messages of others.
	Ahead lsn.Term
	// A message may raise a node's term by at most Leap, and all messages of one ClimbFor together
	// by Climb (§8.1), so that no member can use up the terms: to reach their end, 2^63, takes 250
	// years. An emergency raises terms by 10^9. A term at most Near above may always follow, so
	// that elections go on when the rise of one ClimbFor is used up.
	Leap, Climb, Near lsn.Term
	ClimbFor          time.Duration
}

// DefaultBounds returns the bounds of a Config that has none of its own.
func DefaultBounds() Bounds {
	return Bounds{Reserve: 16, Ahead: 1 << 20,
		Leap: 1 << 32, Climb: 1 << 35, Near: 64, ClimbFor: time.Minute}
}

// bounds checks what the rules need of the bounds.
func (ps *problems) bounds(b *Bounds) {
	if b == nil {
		return
	}
	ps.want(b.Near >= 1, "Bounds.Near", b.Near, "at least 1: the next term must follow")
	ps.want(b.Leap >= 1, "Bounds.Leap", b.Leap, "at least 1")
	ps.want(b.Climb >= b.Leap, "Bounds.Climb", b.Climb, "at least Leap, %d", b.Leap)
	ps.want(b.ClimbFor > 0 && b.ClimbFor <= maxTimer, "Bounds.ClimbFor", b.ClimbFor,
		"positive and at most %s", maxTimer)
	for _, t := range []lsn.Term{b.Reserve, b.Ahead, b.Leap, b.Climb, b.Near} {
		ps.want(t <= 1<<40, "Bounds", t, "at most 2^40, so that sums of terms stay in range")
	}
}
