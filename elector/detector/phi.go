package detector

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"strconv"
	"time"
)

// PhiConfig are the parameters of Phi, under the names of the implementation that most
// users know (Akka).
type PhiConfig struct {
	// Threshold is the suspicion from which on the sender is suspected, in (0, 100]: in the
	// model, 10^-Threshold of the suspicions are wrong. Usual: 8 to 12.
	Threshold float64
	// Window is how many intervals between heartbeats are remembered, 2 to 10000. Usual:
	// 200 to 1000. Two invented ones come first: see NewPhi.
	Window int
	// MinDeviation is the least standard deviation that is assumed for the intervals. Otherwise
	// one hiccup on a quiet link would cause a suspicion. Positive.
	MinDeviation time.Duration
	// Pause is a silence that is tolerated: it is added to the mean of the intervals. Lost
	// heartbeats make it necessary, because a loss shows as one long interval. 0 or more.
	Pause time.Duration
}

// Phi is the accrual detector of [phi]. Its suspicion is
//
//	phi(t) = -log10 P(the next interval is longer than t)
//
// for intervals that are normal with mean and deviation of a window. It inverts phi once per
// heartbeat: phi reaches the threshold at mean + pause + deviation x y, where y is the
// quantile of the normal distribution that belongs to the threshold.
type Phi struct {
	PhiConfig
	y         float64 // phiNormal(y) = Threshold
	newest    Heartbeat
	at        time.Duration // when newest came
	deadline  time.Duration
	base      time.Duration // of what is remembered: the period
	intervals []float64     // a ring, in ns beyond base; next is the oldest once it is full
	next      int
	// sum and squares are those of the intervals. They are computed anew in each turn of the
	// ring, so that no rounding error grows.
	sum, squares float64
}

// Check returns the first field that is out of range, its value, and what would be right; the
// field is "" if all are right.
func (c PhiConfig) Check() (field string, value any, want string) {
	switch {
	case !(c.Threshold > 0 && c.Threshold <= 100):
		return "threshold", c.Threshold, "above 0 and at most 100"
	case c.Window < 2 || c.Window > 10_000:
		return "window", c.Window, "between 2 and 10000"
	case c.MinDeviation <= 0 || c.MinDeviation > longestInterval:
		return "min-deviation", c.MinDeviation, "above 0s and at most " + longestInterval.String()
	case c.Pause < 0 || c.Pause > longestInterval:
		return "pause", c.Pause, "between 0s and " + longestInterval.String()
	}
	return "", nil, ""
}

// WithDefaults replaces each field that is 0: by a threshold of 8, a window of 200, a tenth of the
// sender's period as the least deviation, and the pause with which Least is as long as the promise
// that binds the followers. The zero PhiConfig, which means no detector, stays as it is.
func (c PhiConfig) WithDefaults(period, promise time.Duration) PhiConfig {
	if c == (PhiConfig{}) {
		return c
	}
	c.Threshold = cmp.Or(c.Threshold, defaultThreshold)
	c.Window = cmp.Or(c.Window, 200)
	c.MinDeviation = cmp.Or(c.MinDeviation, period/10)
	if c.Pause == 0 {
		c.Pause = max(0, promise-c.Least())
	}
	return c
}

const defaultThreshold = 8

// ExamplePhi is a PhiConfig as text.
const ExamplePhi = "threshold: 8, window: 200, min-deviation: 100ms, pause: 1s"

// MarshalText returns all fields, as UnmarshalText reads them; nothing for the zero PhiConfig.
func (c PhiConfig) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// String returns the same text.
func (c PhiConfig) String() string {
	if c == (PhiConfig{}) {
		return ""
	}
	return fmt.Sprintf("threshold: %s, window: %d, min-deviation: %s, pause: %s",
		strconv.FormatFloat(c.Threshold, 'f', -1, 64), c.Window, c.MinDeviation, c.Pause)
}

// UnmarshalText reads fields as QoS.UnmarshalText does, and does not check them. If the text is
// not empty the threshold is the default one unless the text sets it.
func (c *PhiConfig) UnmarshalText(text []byte) error {
	var read PhiConfig
	err := readFields(text, ExamplePhi,
		field{"threshold", into(&read.Threshold, parseFloat)},
		field{"window", into(&read.Window, strconv.Atoi)},
		field{"min-deviation", into(&read.MinDeviation, time.ParseDuration)},
		field{"pause", into(&read.Pause, time.ParseDuration)})
	if err != nil {
		return err
	}
	if len(bytes.TrimSpace(text)) > 0 {
		read.Threshold = cmp.Or(read.Threshold, defaultThreshold)
	}
	*c = read
	return nil
}

// Least is how long Phi waits at least after a heartbeat: pause + least deviation x y.
func (c PhiConfig) Least() time.Duration {
	return c.Pause + time.Duration(normalQuantile(c.Threshold)*float64(c.MinDeviation))
}

// NewPhi returns a detector, or an error that says what is wrong with c. The window begins with two
// invented intervals, 3/4 and 5/4 of the announced period, for a deviation of a quarter.
func NewPhi(c PhiConfig) (*Phi, error) {
	if field, value, want := c.Check(); field != "" {
		return nil, fmt.Errorf("phi: %s is %v, but must be %s", field, value, want)
	}
	return &Phi{PhiConfig: c, y: normalQuantile(c.Threshold),
		intervals: make([]float64, 0, c.Window)}, nil
}

// longestInterval keeps the deadline far from overflow.
const longestInterval = 24 * time.Hour

// Observe learns the interval since the heartbeat before. It does not if the sender was suspected
// in between or one of the two heartbeats was held, because an outage is no sample of the
// intervals. With a new period the window begins again. A heartbeat that is not newer than the
// newest one changes nothing.
func (p *Phi) Observe(now time.Duration, hb Heartbeat) time.Duration {
	switch {
	case hb.Number <= p.newest.Number:
		return p.deadline
	case hb.Period != p.newest.Period:
		p.begin(hb.Period)
	case now < p.deadline && !hb.Held && !p.newest.Held:
		p.learn(now - p.at)
	}
	p.newest, p.at = hb, now
	mean, deviation := p.moments()
	p.deadline = now + time.Duration(math.Ceil(mean+float64(p.Pause)+float64(deviation*p.y)))
	return p.deadline
}

// Suspicion returns phi at now; 0 before the first heartbeat.
func (p *Phi) Suspicion(now time.Duration) float64 {
	if p.newest.Number == 0 {
		return 0
	}
	mean, deviation := p.moments()
	return phiNormal((float64(now-p.at-p.Pause) - mean) / deviation)
}

func (p *Phi) begin(period time.Duration) {
	p.intervals, p.next, p.base = p.intervals[:0], 0, bounded(period)
	p.learn(period - period/4)
	p.learn(period + period/4)
}

// learn adds an interval. A product is converted, here and elsewhere, because a compiler may not
// fuse it with a sum then: simulations give the same history on every machine.
func (p *Phi) learn(interval time.Duration) {
	x := float64(bounded(interval) - p.base)
	if len(p.intervals) < cap(p.intervals) {
		p.intervals = append(p.intervals, x)
	} else {
		oldest := p.intervals[p.next]
		p.intervals[p.next] = x
		p.next = (p.next + 1) % len(p.intervals)
		p.sum += x - oldest
		p.squares += float64(x*x) - float64(oldest*oldest)
	}
	if p.next == 0 {
		p.sum, p.squares = 0, 0
		for _, x := range p.intervals {
			p.sum += x
			p.squares += float64(x * x)
		}
	}
}

func bounded(interval time.Duration) time.Duration {
	return min(max(interval, 0), longestInterval)
}

// moments are the mean and the deviation of the window, in nanoseconds.
func (p *Phi) moments() (mean, deviation float64) {
	n := float64(len(p.intervals))
	beyond := p.sum / n
	variance := max(p.squares/n-float64(beyond*beyond), 0)
	return beyond + float64(p.base), max(math.Sqrt(variance), float64(p.MinDeviation))
}

// phiNormal is -log10 of the upper tail of the standard normal distribution at y, exact to
// about 1e-8. Where Erfc gets too small for a float64, its asymptotic series takes over.
func phiNormal(y float64) float64 {
	if y <= 37 {
		return -math.Log10(math.Erfc(y/math.Sqrt2) / 2)
	}
	series := 1 - 1/(y*y) + 3/(y*y*y*y)
	return (y*y/2 + math.Log(y*math.Sqrt(2*math.Pi)) - math.Log(series)) / math.Ln10
}

// normalQuantile returns the y at which phiNormal is phi. It bisects, because math.Erfcinv
// knows nothing of tails below 1e-16.
func normalQuantile(phi float64) float64 {
	low, high := -10.0, math.Sqrt(2*math.Ln10*phi) // the tail at y is below exp(-y^2/2)
	for range 100 {
		if mid := (low + high) / 2; phiNormal(mid) < phi {
			low = mid
		} else {
			high = mid
		}
	}
	return high
}
