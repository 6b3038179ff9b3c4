package detector

import "time"

// Heartbeat is what detectors read of a message that says "I am alive".
type Heartbeat struct {
	// Number is i of [CTA]: 1 for the first heartbeat of a process, and one more for each. Phi,
	// NFDE and Link ignore the number 0.
	Number uint64
	// Scheduled is sigma_i, on the sender's monotonic clock: when the schedule wanted it to be
	// sent. So a late timer and a long queue count as delay.
	Scheduled time.Duration
	// Period is eta: how long after Scheduled the next one is scheduled. Positive.
	Period time.Duration
	// Held says that the heartbeat may have waited for the receiver, which was held up. It shows
	// that the sender lives, but says nothing about the delay.
	Held bool
}

// Detector watches one process of one sender; a process that started again needs a new
// detector. Before the first heartbeat nobody is suspected.
type Detector interface {
	// Observe notes a heartbeat that arrived at now, not earlier than the one before, and
	// returns the deadline: the sender is suspected at t if t >= deadline. The deadline may
	// have passed already; then the heartbeat says too little to trust the sender again.
	Observe(now time.Duration, hb Heartbeat) (deadline time.Duration)
}
