package detector

import "time"

// MissCount is the article's detector: it suspects a sender that has been silent for so many
// periods, counted from the arrival of the newest heartbeat. Any heartbeat restores trust.
//
// T_D is at most m x eta + D, for a count of m. A mistake takes m - 1 losses in a row, and
// that the heartbeat after them, which races with the deadline, is lost too or a little
// slower than the one before the losses: with independent loss and little jitter, E(T_MR) =
// eta / ((1 - p_L) x p_L^(m-1) x (p_L + (1 - p_L)/2)).
// Its weakness: a heartbeat that was fast shortens the wait for the next one.
type MissCount int

// Observe returns the end of the last period that may be silent.
func (m MissCount) Observe(now time.Duration, hb Heartbeat) time.Duration {
	return now + time.Duration(m)*hb.Period
}
