package loop

import (
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/elector/detector"
	"github.com/bmqelect/bmqelect/lsn"
)

// looksFor is the least number of elections at which each beat looks, so that what is followed and
// not led is found even if a program is wrong.
const looksFor = 16

func (s *session) usual() time.Duration { return s.period }

// ring sends the next beat: §16.1, §16.8.
func (s *session) ring(d *Driver, due elector.Time) {
	if s.leads.Len() == 0 {
		d.alarms.Set(s.beat, elector.Never)
		return
	}
	now := d.Now()
	d.slowDown(s)
	next := (now/elector.Time(s.period) + 1) * elector.Time(s.period)
	late := max(now.Sub(due), 0).Truncate(time.Microsecond)
	s.last = s.leads.Beat(now, s.period, late)
	d.Mesh.Beat(s.peer, s.number, s.last)
	d.alarms.Set(s.beat, next)
	if !s.again.Set() || s.again.At == elector.Never {
		s.waitsFor = now
		d.alarms.Set(s.again, now.Add(max(next.Sub(now)/2, d.trips[s.peer]*5/4)))
	}
	s.leads.Look(looksFor+s.leads.Len()/128, func(name string, term lsn.Term) {
		d.checkLed(s, name, term)
	})
}

// again repeats the newest beat if one was not answered in half of the period, or in 5/4 of a
// round trip: then it goes on the stream (§16.6). So a lost datagram leaves guarded work its time
// to stop.
type again struct{ *session }

func (a again) ring(d *Driver, _ elector.Time) {
	d.alarms.Set(a.again, elector.Never)
	d.Mesh.Beat(a.peer, a.number, a.last)
}

// beatPeriod is the shortest period of heartbeats among the elections that this node leads, or what
// the peer needs, if that is shorter.
func (d *Driver) beatPeriod(s *session) time.Duration {
	period := time.Duration(0)
	for c := range d.led {
		p := c.Timing.HeartbeatBroadcast
		if limits := c.Timing.Periods(); c.QoS != (detector.QoS{}) && s.wanted != 0 {
			p = min(max(s.wanted, limits.Shortest), p)
		}
		if period == 0 || p < period {
			period = p
		}
	}
	if period == 0 {
		period = elector.Article().HeartbeatBroadcast // it leads none of what the peer follows: §16.8
	}
	return period
}

// schedule makes the period of beats shorter at once.
func (d *Driver) schedule(s *session, period time.Duration) {
	s.period, s.slowFrom = d.beatPeriod(s), 0
	if s.wanted == 0 {
		s.period = period
	}
	next := (d.Now()/elector.Time(s.period) + 1) * elector.Time(s.period)
	if !s.beat.Set() || s.beat.At > next {
		d.alarms.Set(s.beat, next)
	}
}

// slowWindow is for how many periods a longer one must do before it is taken, and slowBy how much
// longer it must be: peers adapt to every change (§14.4).
const (
	slowWindow = 30
	slowBy     = 1.25
)

// slowDown takes a longer period once it has sufficed for long, and a shorter one at once.
func (d *Driver) slowDown(s *session) {
	p, now := d.beatPeriod(s), d.Now()
	switch {
	case p < s.period:
		s.period, s.slowFrom = p, 0
	case float64(p) <= slowBy*float64(s.period):
		s.slowFrom = 0
	case s.slowFrom == 0:
		s.slowFrom = now
	case now >= s.slowFrom.Add(slowWindow*p):
		s.period, s.slowFrom = p, 0
	}
}
