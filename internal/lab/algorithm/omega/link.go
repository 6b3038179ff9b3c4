package omega

import (
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/elector/detector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
)

// links is what all links have in common.
type links struct {
	ask    detector.QoS // its zero: fixed timers
	limits detector.Limits
	detect time.Duration // T_D^u
	eta    time.Duration // until the receiver has said what it wants
}

func newLinks(cfg *elector.Config) links {
	t := cfg.Timing
	if cfg.QoS == (detector.QoS{}) {
		return links{detect: t.Inactivity(), eta: t.HeartbeatBroadcast}
	}
	limits := t.Periods()
	limits.Detection = 0 // that is for a lease
	return links{
		ask: cfg.QoS, limits: limits, detect: cfg.QoS.Detect,
		eta: max(limits.Longest/4, limits.Shortest),
	}
}

// link is the link to another process, and the one from it.
type link struct {
	number          uint64         // of the newest heartbeat to it
	scheduled, next algorithm.Time // when that heartbeat and the next one are due
	eta             time.Duration

	epoch    algorithm.Time // of its newest life
	newest   uint64         // number of its heartbeats
	deadline algorithm.Time // the freshness point, while it is active
	nfde     *detector.NFDE
	monitor  detector.Monitor
	tuning   detector.Tuning
}

// born makes a fresh record of a new life. The link is the same, and the answer goes at once.
func (p *process) born(now, epoch algorithm.Time) {
	p.active, p.acc, p.start, p.local = false, unheard, unheard, -1
	p.epoch, p.newest, p.nfde, p.next = epoch, 0, nil, now
}

// hasten makes the next ALIVE to a process due at once.
func (m *machine) hasten(now algorithm.Time, to int) { m.processes[to].next = now }

// adopt keeps the period that a process wants. A shorter one counts from now on.
func (m *machine) adopt(now algorithm.Time, p *process, wanted time.Duration) {
	if wanted > 0 && m.ask != (detector.QoS{}) {
		p.eta = min(max(wanted, m.limits.Shortest), m.limits.Longest)
		p.next = min(p.next, max(p.scheduled.Add(p.eta), now))
	}
}

// sendDue sends the ALIVEs that are due, and returns when the next ALIVE or suspicion is.
func (m *machine) sendDue(now algorithm.Time) (wake algorithm.Time) {
	wake = elector.Never
	for to := range m.processes {
		p := &m.processes[to]
		if to == m.self {
			continue
		}
		if m.sends && p.next <= now {
			m.sendAlive(now, to)
		}
		if m.sends {
			wake = min(wake, p.next)
		}
		if p.active {
			wake = min(wake, p.deadline)
		}
	}
	return wake
}

// sendAlive sends a heartbeat. It skips the heartbeats of missed periods.
func (m *machine) sendAlive(now algorithm.Time, to int) {
	p := &m.processes[to]
	p.number++
	p.scheduled = now - (now-p.next)%algorithm.Time(p.eta)
	p.next = p.scheduled.Add(p.eta)
	a := m.news(to)
	a.Number, a.Scheduled, a.Period = p.number, time.Duration(p.scheduled), p.eta
	if m.kind == omegaLC {
		local := m.processes[m.self].local
		a.Local, a.LocalAcc = m.order[local], m.processes[local].acc
	}
	m.send(to, a)
}

// news is an ALIVE of a process that is not active.
func (m *machine) news(to int) Alive {
	self := &m.processes[m.self]
	return Alive{
		Epoch: m.epoch, Acc: self.acc, Start: self.start, Wanted: m.processes[to].tuning.Period,
	}
}

// observe notes a heartbeat, and reports whether its sender is to be trusted. With QoS it
// estimates the link; what period that needs goes with the next ALIVE, or at once if there is none.
func (m *machine) observe(now algorithm.Time, from int, a *Alive) bool {
	p := &m.processes[from]
	hb := detector.Heartbeat{Number: a.Number, Scheduled: a.Scheduled, Period: a.Period}
	if p.nfde == nil {
		p.nfde = detector.NewNFDE(m.detect)
	}
	p.deadline = algorithm.Time(p.nfde.Observe(time.Duration(now), hb))
	if m.ask != (detector.QoS{}) {
		p.monitor.Observe(time.Duration(now), detector.Source{Term: uint64(p.epoch)}, hb)
		p.tuning = p.monitor.Tune(p.tuning, m.ask, m.limits)
		wanted := p.tuning.Period
		if !m.sends && (wanted < a.Period || wanted > a.Period+a.Period/4) {
			m.send(from, m.news(from))
		}
	}
	return p.deadline > now
}
