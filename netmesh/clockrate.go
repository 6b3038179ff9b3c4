package netmesh

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

const (
	rateWindow  = 8     // answered pings of which the quickest counts
	rateWindows = 16    // windows that are kept: the longer apart, the better the estimate
	rateLeast   = 3     // windows that an estimate takes: one step of a clock spoils but one of its two gaps
	rateSlack   = 1_000 // ppm: kernels that correct their clocks slew them by up to 500 each
)

// clockSample is a ping by the clocks of both ends: its answer was read not
// before, and the ping itself not after, what the peer's clock then showed.
type clockSample struct {
	sent, back    time.Duration // here
	got, answered time.Duration // there
}

// delay is what the network, and processes that were paused, took.
func (s clockSample) delay() time.Duration { return (s.back - s.sent) - (s.answered - s.got) }

// rates are bounds of how much faster than this node's clock the peer's runs, in
// parts per million.
type rates struct{ low, high float64 }

// rateBetween returns the bounds that two samples leave, the earlier one first.
// They hold whatever delayed the pings, since nothing arrives before it is sent.
func rateBetween(a, b clockSample) (rates, bool) {
	least, most := (b.sent - a.back), (b.back - a.sent)
	if least <= 0 {
		return rates{}, false
	}
	return rates{
		low:  1e6 * (float64((b.answered-a.got))/float64(most) - 1),
		high: 1e6 * (float64((b.got-a.answered))/float64(least) - 1),
	}, true
}

// estimate and doubt say the same as the middle and half of the distance.
func (r rates) estimate() float64 { return (r.low + r.high) / 2 }
func (r rates) doubt() float64    { return (r.high - r.low) / 2 }

// clockRate estimates the rate of the peer's clock from the pings of one link.
type clockRate struct {
	mu    sync.Mutex
	count int           // samples in this window
	best  clockSample   // the quickest of them
	kept  []clockSample // of the windows before, the oldest first
	now   rates
	known bool
	wall  time.Duration // the peer's wall clock less this node's
}

// add takes a sample into account. The result is what is known by now if a
// window has ended with it.
func (c *clockRate) add(s clockSample) (r rates, renewed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.count == 0 || s.delay() < c.best.delay() {
		c.best = s
	}
	if c.count++; c.count < rateWindow {
		return rates{}, false
	}
	c.count = 0
	c.keep(c.best)
	if len(c.kept) < rateLeast {
		return rates{}, false
	}
	c.now, renewed = rateBetween(c.kept[0], c.best)
	c.known = c.known || renewed
	return c.now, renewed
}

// keep appends the best of a window. A clock that was set, or stood still with its
// machine, makes a gap of another rate than those before: all begins anew.
func (c *clockRate) keep(s clockSample) {
	if !c.continues(s) {
		c.kept = c.kept[:0]
	}
	if len(c.kept) == rateWindows {
		c.kept = slices.Delete(c.kept, 0, 1)
	}
	c.kept = append(c.kept, s)
}

// continues reports whether the gap before s has the rate of those before it, as
// far as the bounds tell.
func (c *clockRate) continues(s clockSample) bool {
	n := len(c.kept)
	if n == 0 {
		return true
	}
	gap, ok := rateBetween(c.kept[n-1], s)
	if !ok || n == 1 {
		return ok
	}
	before, ok := rateBetween(c.kept[0], c.kept[n-1])
	return ok && gap.low <= before.high+rateSlack && gap.high >= before.low-rateSlack
}

// read returns what is known; false before the first estimate.
func (c *clockRate) read() (r rates, known bool, wall time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now, c.known, c.wall
}

func (c *clockRate) setWall(difference time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wall = difference
}

// timed takes an answered ping into account, and judges the clocks now and then.
func (l *link) timed(sent, back time.Duration, answer *ping) error {
	if answer.Received < 0 || answer.Sent < answer.Received {
		return refuse(ReasonGarbage, "ping received at %d and answered at %d", answer.Received, answer.Sent)
	}
	s := clockSample{sent, back, time.Duration(answer.Received), time.Duration(answer.Sent)}
	l.rate.setWall(time.Until(time.Unix(0, answer.Wall)) + s.delay()/2)
	if r, renewed := l.rate.add(s); renewed && l.m.cfg.MaxDriftPPM > 0 {
		l.judgeClock(r, float64(l.m.cfg.MaxDriftPPM))
	}
	return nil
}

// judgeClock draws a conclusion where the bounds leave no doubt.
func (l *link) judgeClock(r rates, limit float64) {
	l.p.takeTurn()
	defer l.p.leaveTurn()
	exceeds := r.low > limit || r.high < -limit
	keeps := r.low >= -limit && r.high <= limit
	if !l.current() || !exceeds && !keeps {
		return
	}
	detail := ""
	if exceeds {
		detail = fmt.Sprintf("the clock of node %q runs at %+.0f ppm (+- %.0f) against that of node %q; at most %.0f ppm either way are allowed",
			l.p.node, r.estimate(), r.doubt(), l.m.cfg.Node, limit)
	}
	l.m.finds(l.p.node, FindingClockRate, detail)
}
