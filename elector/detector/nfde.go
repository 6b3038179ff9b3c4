package detector

import "time"

// NFDE is the detector NFD-E of [CTA], with freshness points. The heartbeat after the newest
// one, number l, is expected at EA = mean(A_k - S_k) + S_{l+1}, the mean over the newest
// arrivals, and the freshness point is tau = EA + alpha. Only a number above l moves tau: a
// heartbeat that was sent too long ago does not restore trust, and a fast one does not
// shorten the wait for the next.
//
// Where the paper has i x eta, this has the schedule time S_i, so the period may change at any
// time. With alpha = T_D^u - eta, eta being the period that the newest heartbeat announces, T_D
// stays what was asked when the sender changes its period because of another follower. Then
// tau = mean(A_k - S_k) + S_l + T_D^u, without eta.
type NFDE struct {
	detection time.Duration // T_D^u
	arrivals  arrivals
	tau       time.Duration
}

// NewNFDE returns a detector that detects a crash within detection + E(D), where detection
// is T_D^u = eta + alpha; see Plan.Detection. A detection that is not longer than the period
// suspects a living sender in every period.
func NewNFDE(detection time.Duration) *NFDE { return &NFDE{detection: detection} }

// Observe returns the freshness point.
func (d *NFDE) Observe(now time.Duration, hb Heartbeat) time.Duration {
	if d.arrivals.note(now, hb) && d.arrivals.newest == hb {
		d.tau = d.arrivals.lateness() + hb.Scheduled + d.detection
	}
	return d.tau
}

// Adjust changes T_D^u because the estimate of E(D) has moved, and returns the new freshness point.
func (d *NFDE) Adjust(detection time.Duration) time.Duration {
	d.tau += detection - d.detection
	d.detection = detection
	return d.tau
}

// Forget forgets the lateness of what has arrived, but not the numbers. It is for the time after a
// suspicion: the next new heartbeat shows what is usual now. Otherwise, on a link that has become
// slower for good, the sender would be suspected in every period until the mean has followed.
func (d *NFDE) Forget() { d.arrivals.count, d.arrivals.sum = 0, 0 }
