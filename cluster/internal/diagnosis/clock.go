package diagnosis

import (
	"fmt"
	"slices"
	"time"

	"github.com/bmqelect/bmqelect/cluster/findings"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/netmesh"
)

const (
	rateWindow  = 8     // answered pings; the quickest of them counts
	rateWindows = 16    // windows that are kept: a longer time gives a better estimate
	rateLeast   = 3     // windows for an estimate: a clock that was set spoils one gap only
	rateSlack   = 1_000 // ppm: kernels slew their clocks by up to 500 each
)

// clockRate estimates the rate of a peer's clock from the pings of one link.
type clockRate struct {
	count     int            // pings in this window
	best      netmesh.Ping   // the quickest of them
	kept      []netmesh.Ping // the quickest pings of earlier windows, the oldest first
	low, high float64        // bounds of the rate, in parts per million
}

func (c *clockRate) clock() findings.Clock {
	return findings.Clock{Rate: (c.low + c.high) / 2, Doubt: (c.high - c.low) / 2}
}

// rateBetween returns the bounds of the rate that follow from two pings, a before b. They
// are valid whatever delayed the pings, since nothing arrives before it is sent.
func rateBetween(a, b netmesh.Ping) (low, high float64, ok bool) {
	least, most := b.Sent-a.Back, b.Back-a.Sent
	if least <= 0 {
		return 0, 0, false
	}
	return 1e6 * (float64(b.Answered-a.Received)/float64(most) - 1),
		1e6 * (float64(b.Received-a.Answered)/float64(least) - 1), true
}

// add takes a ping into account, and reports whether it computed new bounds.
func (c *clockRate) add(p netmesh.Ping) (renewed bool) {
	delay := func(p netmesh.Ping) time.Duration {
		return (p.Back - p.Sent) - (p.Answered - p.Received)
	}
	if c.count == 0 || delay(p) < delay(c.best) {
		c.best = p
	}
	if c.count++; c.count < rateWindow {
		return false
	}
	c.count = 0
	if n := len(c.kept); n > 0 {
		// If a clock was set, or stood still with its machine, the rate since the last window
		// differs from the rate before: the estimate starts again.
		low, high, ok := rateBetween(c.kept[n-1], c.best)
		if ok && n > 1 {
			var before, after float64
			before, after, ok = rateBetween(c.kept[0], c.kept[n-1])
			ok = ok && low <= after+rateSlack && high >= before-rateSlack
		}
		if !ok {
			c.kept = nil
		} else if n == rateWindows {
			c.kept = slices.Delete(c.kept, 0, 1)
		}
	}
	c.kept = append(c.kept, c.best)
	if len(c.kept) < rateLeast {
		return false
	}
	low, high, ok := rateBetween(c.kept[0], c.best)
	if ok {
		c.low, c.high = low, high
	}
	return ok
}

// Answered measures the clock of a peer. It raises or ends a finding only if the whole interval
// between the bounds is on one side of the limit.
func (w watcher) Answered(peer elector.NodeID, ping netmesh.Ping) {
	d, limit := w.d, float64(w.d.cfg.MaxDriftPPM)
	d.mu.Lock()
	c := d.clocks[peer]
	if c == nil || !c.add(ping) || limit == 0 {
		d.mu.Unlock()
		return
	}
	low, high, now := c.low, c.high, c.clock()
	d.mu.Unlock()
	switch {
	case low > limit, high < -limit:
		d.finds(findings.ClockRate, peer, fmt.Sprintf("the clock of node %q runs at %+.0f ppm (+- %.0f) "+
			"against that of node %q; at most %.0f ppm either way are allowed",
			peer, now.Rate, now.Doubt, d.cfg.Node, limit))
	case low >= -limit && high <= limit:
		d.finds(findings.ClockRate, peer, "")
	}
}
