package omega

import (
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/elector/detector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
)

// limit sets what all links have in common.
func (r *rules) limit() {
	r.detect, r.eta = r.Timing.Inactivity(), r.Timing.HeartbeatBroadcast
	if r.ask = r.Cfg.Elector.QoS; r.ask != (detector.QoS{}) {
		r.limits = r.Timing.Periods()
		r.limits.Detection = 0 // that is for a lease
		r.detect, r.eta = r.ask.Detect, max(r.limits.Longest/4, r.limits.Shortest)
	}
}

// born makes a fresh record of a new life. The link is the same, and the answer goes at once.
func (p *process) born(now, epoch algorithm.Time) {
	p.active, p.acc, p.start, p.local = false, unheard, unheard, -1
	p.epoch, p.newest, p.nfde, p.next = epoch, 0, nil, now
}

// hasten makes the next ALIVE to a process due at once.
func (r *rules) hasten(to int) { r.processes[to].next = r.Now }

// adopt keeps the period that a process wants. A shorter one counts from now on.
func (r *rules) adopt(p *process, wanted time.Duration) {
	if wanted > 0 && r.ask != (detector.QoS{}) {
		p.eta = min(max(wanted, r.limits.Shortest), r.limits.Longest)
		p.next = min(p.next, max(p.scheduled.Add(p.eta), r.Now))
	}
}

// sendDue sends the ALIVEs that are due, and returns when the next ALIVE or suspicion is.
func (r *rules) sendDue() (wake algorithm.Time) {
	wake = elector.Never
	for to := range r.processes {
		p := &r.processes[to]
		if to == r.Self {
			continue
		}
		if r.sends && p.next <= r.Now {
			r.sendAlive(to)
		}
		if r.sends {
			wake = min(wake, p.next)
		}
		if p.active {
			wake = min(wake, p.deadline)
		}
	}
	return wake
}

// sendAlive sends a heartbeat. It skips the heartbeats of missed periods.
func (r *rules) sendAlive(to int) {
	p := &r.processes[to]
	p.number++
	p.scheduled = r.Now - (r.Now-p.next)%algorithm.Time(p.eta)
	p.next = p.scheduled.Add(p.eta)
	a := r.news(to)
	a.Number, a.Scheduled, a.Period = p.number, time.Duration(p.scheduled), p.eta
	if r.kind == omegaLC {
		local := r.processes[r.Self].local
		a.Local, a.LocalAcc = r.Name(local), r.processes[local].acc
	}
	r.Send(to, a)
}

// news is an ALIVE of a process that is not active.
func (r *rules) news(to int) Alive {
	self := &r.processes[r.Self]
	return Alive{
		Epoch: r.epoch, Acc: self.acc, Start: self.start, Wanted: r.processes[to].tuning.Period,
	}
}

// observe notes a heartbeat, and reports whether its sender is to be trusted. With QoS it
// estimates the link; what period that needs goes with the next ALIVE, or at once if there is none.
func (r *rules) observe(from int, a *Alive) bool {
	p := &r.processes[from]
	hb := detector.Heartbeat{Number: a.Number, Scheduled: a.Scheduled, Period: a.Period}
	if p.nfde == nil {
		p.nfde = detector.NewNFDE(r.detect)
	}
	p.deadline = algorithm.Time(p.nfde.Observe(time.Duration(r.Now), hb))
	if r.ask != (detector.QoS{}) {
		p.monitor.Observe(time.Duration(r.Now), detector.Source{Term: uint64(p.epoch)}, hb)
		p.tuning = p.monitor.Tune(p.tuning, r.ask, r.limits)
		wanted := p.tuning.Period
		if !r.sends && (wanted < a.Period || wanted > a.Period+a.Period/4) {
			r.Send(from, r.news(from))
		}
	}
	return p.deadline > r.Now
}
