package detector

import (
	"errors"
	"fmt"
	"time"
)

// Monitor estimates the link from one peer by the heartbeats of the elections that the peer leads,
// and tells each election what it needs on that link. All elections share the estimates.
//
// Each election numbers its heartbeats by itself, so the Monitor measures one election at a time;
// another takes its place when the heartbeats stay away. The zero Monitor has seen nothing, and is
// ready for use.
type Monitor struct {
	// Ordered says that the link is; see Quality.
	Ordered bool

	link   Link
	source Source
	newest Heartbeat     // of source
	at     time.Duration // when it came
}

// Source identifies the leadership, and its election, that sends heartbeats.
type Source struct {
	Group string
	Term  uint64
}

// silence is the number of periods without a heartbeat after which another election is measured.
const silence = 4

// LinkUp notes that there is a new link to the peer, whose process may be a new one. What was
// sent between the links was not lost by either.
func (m *Monitor) LinkUp() {
	m.source = Source{}
}

// Observe notes a heartbeat that arrived at now. It ignores one without a period, of an older
// build.
func (m *Monitor) Observe(now time.Duration, from Source, hb Heartbeat) {
	if hb.Period <= 0 || hb.Period > time.Hour {
		return
	}
	if from != m.source {
		if m.source != (Source{}) && now-m.at < silence*m.newest.Period {
			return
		}
		m.link.Restart()
		m.source = from
	}
	m.newest, m.at = hb, now
	m.link.Ordered = m.Ordered
	m.link.Observe(now, hb)
}

// RoundTrip notes that a message to the peer and its answer took d together.
func (m *Monitor) RoundTrip(d time.Duration) { m.link.RoundTrip(d) }

// Tuning is what one election needs on a link.
type Tuning struct {
	// Quality is what was measured.
	Quality Quality
	// Known says that enough was measured. Until then the period is a quarter of the longest, so
	// that enough is measured soon and losses do little harm.
	Known bool
	// Period is the eta that the leader should keep.
	Period time.Duration
	// Detection is T_D^u, for NewNFDE: Detect without the mean delay, but at least
	// Limits.Detection.
	Detection time.Duration
}

// Tune returns what an election that asks for a quality of service needs on the link, within
// limits. It returns last if the estimates have hardly moved since: by less than a tenth, or the
// delay by less than a hundredth of Detect.
func (m *Monitor) Tune(last Tuning, ask QoS, limits Limits) Tuning {
	q, known := m.link.Quality()
	if last.Known == known && last.Period != 0 && !moved(last.Quality, q, ask.Detect/100) {
		return last
	}
	t := Tuning{
		Quality: q, Known: known, Period: max(limits.Longest/4, limits.Shortest),
		Detection: max(ask.Detect-q.Delay, limits.Detection),
	}
	if !known {
		return t
	}
	p := t.problem(ask, limits)
	eta, ok := p.solve()
	if ok {
		eta = p.round(eta)
	} else {
		eta = p.safest()
	}
	t.Period = min(max(seconds(eta), limits.Shortest), limits.Longest)
	return t
}

// moved reports whether estimates differ noticeably.
func moved(a, b Quality, delay time.Duration) bool {
	far := func(a, b float64) bool { return a > 1.1*b || b > 1.1*a }
	return far(a.Loss, b.Loss) || far(float64(a.Deviation), float64(b.Deviation)) ||
		(a.Delay-b.Delay).Abs() > delay
}

// problem is that of the configurator, with the T_D^u that is kept.
func (t Tuning) problem(ask QoS, limits Limits) problem {
	p := newProblem(ask, t.Quality, limits)
	p.t = t.Detection.Seconds()
	return p
}

// Promise returns the plan that holds while the leader keeps the given period. The error says why
// the plan is less than was asked, and is nil if it is not. It is an *Infeasible if no period
// within the limits suffices.
func (t Tuning) Promise(ask QoS, limits Limits, period time.Duration) (Plan, error) {
	p := t.problem(ask, limits)
	switch {
	case period <= 0:
		return Plan{}, errors.New("qos: the leader runs an older version, which says no period")
	case period >= t.Detection:
		return Plan{}, fmt.Errorf("qos: the leader sends every %s, so no crash is detected within %s",
			period, t.Detection)
	case !t.Known:
		return Plan{}, fmt.Errorf("qos: the link is not known before %d heartbeats have come", known)
	}
	plan := p.plan(period.Seconds())
	need, err := Configure(ask, t.Quality, limits)
	if err == nil && !p.keeps(period.Seconds()) {
		err = fmt.Errorf("qos: the leader sends every %s, and %s is needed", period, need.Period)
	}
	return plan, err
}
