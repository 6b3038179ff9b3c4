package elector

import (
	"time"

	"github.com/bmqelect/bmqelect/elector/detector"
)

// asksQuality reports whether a quality of service is asked.
func (c *resolved) asksQuality() bool { return c.QoS != (detector.QoS{}) }

// tuned notes what the link from a leader needs, and judges that leader by it from now on.
func (m *Machine) tuned(in Tuned) {
	limits := m.cfg.Timing.Periods()
	sound := in.Period >= limits.Shortest && in.Period <= limits.Longest &&
		in.Detection >= limits.Detection
	if !sound { // §14.5
		return
	}
	m.state.rare().Tuned = in
	f, w := m.state.Follower, m.watch
	if f.Leader != in.Peer || f.Leader != w.leader || f.LeaderTerm != w.term {
		return
	}
	if nfde, ok := w.Detector.(*detector.NFDE); ok {
		detection := m.detection(in.Peer, f.Period)
		f.SilentAt = m.soon(Time(nfde.Adjust(detection)), detection)
	}
}

// detection is T_D^u for a leader that announces the given period: as tuned, or before that all of
// QoS.Detect. It is at least two periods, so that a leader whose configuration makes it slow is not
// suspected in every period.
func (m *Machine) detection(leader NodeID, period time.Duration) time.Duration {
	d := m.cfg.QoS.Detect
	if t := &m.state.Tuned; t.Peer == leader {
		d = t.Detection
	}
	return max(d, 2*min(period, maxTimer))
}

// wantedPeriod is what the ack of a heartbeat asks its sender for: §14.3.
func (m *Machine) wantedPeriod(leader NodeID) time.Duration {
	switch t := &m.state.Tuned; {
	case !m.cfg.asksQuality():
		return 0
	case t.Peer == leader:
		return t.Period
	}
	return m.cfg.Timing.HeartbeatBroadcast
}

// notePeriod notes the period that a follower needs. The leader adopts a shorter one at once:
// §14.4. A leader without Config.QoS does not change its period.
func (m *Machine) notePeriod(voter int, wanted time.Duration) {
	if !m.cfg.asksQuality() {
		return
	}
	l := m.state.Leader
	m.state.By[voter].Wanted = max(wanted, 0)
	if p := m.cfg.Timing.possible(wanted); wanted > 0 && p < l.Period {
		l.Period, l.SlowSince = p, 0
		l.BroadcastAt = min(l.BroadcastAt, m.nextBroadcast())
	}
}

// slowWindow is for how many inactivity intervals a longer period must suffice before the leader
// adopts it, and slowFrom how much longer it must be, since followers adapt to every change.
const (
	slowWindow = 10
	slowFrom   = 1.25
)

// slowDown adopts a longer period once it has sufficed for long: §14.4.
func (m *Machine) slowDown() {
	l, t, now := m.state.Leader, &m.cfg.Timing, m.state.Now
	p := m.fastest()
	switch {
	case float64(p) <= slowFrom*float64(l.Period):
		l.SlowSince = 0
	case l.SlowSince == 0:
		l.SlowSince = now
	case now >= l.SlowSince.Add(slowWindow*t.Inactivity()):
		l.Period, l.SlowSince = p, 0
	}
}

// fastest is the shortest period that a follower heard lately needs, or the longest possible one if
// none says what it needs.
func (m *Machine) fastest() time.Duration {
	t := &m.cfg.Timing
	heard := m.state.Now.Add(-2 * t.Inactivity())
	p := t.HeartbeatBroadcast
	for voter := range m.set.voters {
		if by := &m.state.By[voter]; by.Wanted != 0 && by.Support > heard {
			p = min(p, t.possible(by.Wanted))
		}
	}
	return p
}

// nextBroadcast is the next multiple of the period on the node's clock: §7.1. So the
// heartbeats of several elections go out together.
func (m *Machine) nextBroadcast() Time {
	period := Time(m.state.Leader.Period)
	return (m.state.Now/period + 1) * period
}
