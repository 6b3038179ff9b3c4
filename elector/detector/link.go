package detector

import (
	"math"
	"time"
)

// Quality is how good a link is in one direction.
type Quality struct {
	// Loss is p_L, the probability that a heartbeat never arrives, in (0, 0.9].
	Loss float64
	// Delay is E(D), the mean delay; 0 if it is not known.
	Delay time.Duration
	// Deviation is the standard deviation of the delay, the root of V(D). Positive.
	Deviation time.Duration
	// Ordered says that no heartbeat overtakes another, as in a TCP connection: one that is
	// late delays all behind it, so they are not independent. A heartbeat that was lost then
	// counts in Deviation as one that came with the next, as Link measures it, and Configure does
	// not need Loss.
	Ordered bool
}

const (
	mostLoss = 0.9
	// lossMemory and delayMemory are the numbers of heartbeats over which means are taken; older
	// ones fade. The variance needs the long memory because rare stalls cause it.
	lossMemory, delayMemory = 1 << 14, 1 << 20
	// known is the number of delays after which a link's quality counts as known, and startLoss
	// is p_L until then: both from [ST].
	known, startLoss = 128, 0.01
	// granularity is the least deviation that is believed: that of timers.
	granularity = 100 * time.Microsecond
	// patience is how many deviations a heartbeat may be late before it counts as lost. By
	// Cantelli's inequality at most 1/(1 + patience^2), 1 %, are later: [ST].
	patience = 9.95
)

// Link estimates the quality of a link between two nodes, in one direction, from the heartbeats
// that arrive. The zero Link has seen nothing, and is ready for use.
type Link struct {
	// Ordered is passed on to Quality.
	Ordered bool

	arrivals arrivals
	judged   uint64 // heartbeats up to this number count in lost
	lost     mean   // 1 for a heartbeat that did not arrive, 0 for one that did
	variance mean   // V(D), in ns^2
	trip     mean   // in ns
}

// Observe notes a heartbeat that arrived at now. Its delay counts from its schedule time, and is
// compared with the mean of the window before it. So drift between the clocks adds no variance,
// but every stall does, unless it was the receiver's own: see Heartbeat.Held.
func (l *Link) Observe(now time.Duration, hb Heartbeat) {
	a := &l.arrivals
	switch {
	case hb.Number == 0:
		return
	case a.beginsWith(hb):
		a.note(now, hb)
		l.judged = hb.Number
		return
	}
	l.judge(now, hb.Number)
	n, usual, last := float64(a.count), a.lateness(), a.newest.Number
	says := !a.standIn && !a.excuses(hb)
	if !a.note(now, hb) {
		return
	}
	if hb.Number <= l.judged { // the heartbeat was counted as lost
		l.lost.value = max(l.lost.value-1/l.lost.n, 0)
	}
	if !says {
		return
	}
	// The mean of n delays varies as well, by V(D)/n.
	x := now - hb.Scheduled - usual
	if l.Ordered && hb.Number > last { // those between were lost: they count as if they came with it
		for i := range hb.Number - last - 1 {
			gap := float64(x + time.Duration(i+1)*hb.Period)
			l.variance.add(gap*gap*n/(n+1), delayMemory)
		}
	}
	l.variance.add(float64(x)*float64(x)*n/(n+1), delayMemory)
}

// judge counts heartbeats in the order of their numbers, as arrived or as lost once they are too
// late. It waits no longer for numbers that are too old to be kept when the newest arrives.
func (l *Link) judge(now time.Duration, newest uint64) {
	a := &l.arrivals
	latest := a.newest.Scheduled + a.lateness() + time.Duration(patience*l.deviation())
	for l.judged < a.newest.Number {
		n := l.judged + 1
		wait := latest - time.Duration(a.newest.Number-n)*a.newest.Period - now
		switch {
		case a.has(n):
			l.lost.add(0, lossMemory)
		case wait > 0 && newest-n < numbersKept:
			return
		default:
			l.lost.add(1, lossMemory)
		}
		l.judged = n
	}
}

// RoundTrip notes that a message and its answer took d together. Half of it counts as the delay of
// one direction: without synchronized clocks nothing better can be known.
func (l *Link) RoundTrip(d time.Duration) { l.trip.add(float64(d), known) }

// Restart prepares for a new process of the sender, which counts from 1 on another clock.
// The link is the same.
func (l *Link) Restart() { l.arrivals, l.judged = arrivals{}, 0 }

// Quality returns the estimates. Until 128 delays were seen, isKnown is false and the loss is a
// default.
func (l *Link) Quality() (q Quality, isKnown bool) {
	q = Quality{
		Loss: startLoss, Delay: time.Duration(l.trip.value / 2),
		Deviation: time.Duration(l.deviation()), Ordered: l.Ordered,
	}
	if l.variance.n < known {
		return q, false
	}
	// k losses in m are (k + 1/2)/(m + 1): no loss yet is no proof that none can be.
	q.Loss = min((l.lost.value*l.lost.n+0.5)/(l.lost.n+1), mostLoss)
	return q, true
}

// deviation is in nanoseconds.
func (l *Link) deviation() float64 {
	return max(math.Sqrt(l.variance.value), float64(granularity))
}

// mean is the mean of the n newest values, about; the zero mean has seen none.
type mean struct{ value, n float64 }

func (m *mean) add(x, memory float64) {
	m.n = min(m.n+1, memory)
	m.value += (x - m.value) / m.n
}
