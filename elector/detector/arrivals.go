package detector

import "time"

const (
	// windowSize is n of [CTA]: the number of arrivals in the mean. With 32, NFDE makes a tenth
	// more mistakes than with the true mean; with 128, hardly more.
	windowSize = 128
	// windowSpan bounds the window in time: within it, two clocks whose rates differ by 10^-4
	// drift apart by a millisecond.
	windowSpan = 10 * time.Second
	// numbersKept is for how many of the newest numbers it is remembered whether they arrived. A
	// gap of that length is an outage, after which everything begins again.
	numbersKept = 1024
)

// arrivals are the newest heartbeats of one process of a sender: which have arrived, and how
// late. Its zero has seen none. Lateness is A_i - S_i: the delay, plus the unknown difference
// between the zeros of the two clocks.
type arrivals struct {
	newest  Heartbeat                // l of [CTA]: the one of the highest number
	seen    [numbersKept / 64]uint64 // a bit for each number, modulo numbersKept
	window  [windowSize]arrival      // a ring
	oldest  int                      // index in window
	count   int
	base    time.Duration // the first lateness; others are relative to it, so sums stay small
	sum     time.Duration // of the window's lateness
	held    int           // how many in a row were Held
	standIn bool          // the only arrival in the window was Held
}

type arrival struct{ at, late time.Duration }

// note remembers a heartbeat, and reports whether it was new: neither a duplicate nor older
// than what is kept.
func (a *arrivals) note(now time.Duration, hb Heartbeat) bool {
	switch {
	case hb.Number == 0:
		return false
	case a.beginsWith(hb):
		*a = arrivals{newest: hb, base: now - hb.Scheduled}
		for i := range a.seen { // earlier numbers do not count as lost
			a.seen[i] = ^uint64(0)
		}
	case hb.Number > a.newest.Number:
		for n := a.newest.Number + 1; n < hb.Number; n++ {
			a.seen[n/64%uint64(len(a.seen))] &^= 1 << (n % 64)
		}
		a.newest = hb
	case a.newest.Number-hb.Number >= numbersKept || a.has(hb.Number):
		return false
	}
	a.seen[hb.Number/64%uint64(len(a.seen))] |= 1 << (hb.Number % 64)
	a.learn(now, hb)
	return true
}

// learn takes a lateness into the window. One that says nothing about the delay only stands in
// until one comes that does: the newest of them, while there is no other.
func (a *arrivals) learn(now time.Duration, hb Heartbeat) {
	excused := a.excuses(hb)
	a.held++
	if !hb.Held {
		a.held = 0
	}
	if excused && a.count > 0 && !a.standIn {
		return
	}
	if a.standIn {
		a.count, a.sum = 0, 0
	}
	a.standIn = excused
	a.push(arrival{at: now, late: now - hb.Scheduled - a.base})
}

// excuses reports whether the lateness of a heartbeat says nothing about the delay. But a receiver
// that is held up all the time, so that no heartbeat comes in time, is slow, and must learn that.
func (a *arrivals) excuses(hb Heartbeat) bool { return hb.Held && a.held < numbersKept }

// beginsWith reports whether hb is the first heartbeat, or the first after an outage.
func (a *arrivals) beginsWith(hb Heartbeat) bool {
	newest := a.newest.Number
	return newest == 0 || hb.Number > newest && hb.Number-newest >= numbersKept
}

// has reports whether a number that is kept has arrived.
func (a *arrivals) has(n uint64) bool {
	return a.seen[n/64%uint64(len(a.seen))]&(1<<(n%64)) != 0
}

// push takes an arrival into the window, and drops those that are too many or too old.
func (a *arrivals) push(newest arrival) {
	for a.count == windowSize || a.count > 0 && a.window[a.oldest].at+windowSpan < newest.at {
		a.sum -= a.window[a.oldest].late
		a.oldest = (a.oldest + 1) % windowSize
		a.count--
	}
	a.window[(a.oldest+a.count)%windowSize] = newest
	a.count++
	a.sum += newest.late
}

// lateness is the mean lateness of the window, which is not empty: E(D), plus the difference
// between the clocks.
func (a *arrivals) lateness() time.Duration {
	return a.base + a.sum/time.Duration(a.count)
}
