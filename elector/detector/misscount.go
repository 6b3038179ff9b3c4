package detector

import "time"

// MissCount is the article's detector: it suspects a sender that has been silent for so many
// periods since the newest heartbeat arrived. Any heartbeat restores trust.
//
// With a count of m, T_D is at most m x eta + D. For a mistake, m - 1 heartbeats in a row must be
// lost, and the next one, which races with the deadline, must be lost too or be a little slower
// than the one before the losses. With independent loss and little jitter, E(T_MR) =
// eta / ((1 - p_L) x p_L^(m-1) x (p_L + (1 - p_L)/2)).
// Its weakness: a fast heartbeat shortens the wait for the next one.
type MissCount int

// Observe returns the end of the last period that may be silent.
func (m MissCount) Observe(now time.Duration, hb Heartbeat) time.Duration {
	return now + time.Duration(m)*hb.Period
}
