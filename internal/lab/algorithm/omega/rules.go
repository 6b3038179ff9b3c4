package omega

import (
	"math"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
)

// unheard is before any reading of the clock.
const unheard = algorithm.Time(math.MinInt64)

// join starts a life. A process is its own leader until it hears of another.
func (r *rules) join() {
	r.epoch = r.shared()
	for i := range r.processes {
		r.processes[i] = process{eta: r.eta}
		r.processes[i].born(r.Now, unheard)
	}
	self := &r.processes[r.Self]
	self.active, self.acc, self.start, self.local = true, r.epoch, r.epoch, r.Self
	r.sends = r.kind != omegaL // there, it begins when it leads
}

// shared is the clock that all share.
func (r *rules) shared() algorithm.Time { return r.Now + r.Skew }

func (r *rules) Receive(from int, message algorithm.Message) {
	switch msg := message.(type) {
	case Alive:
		if msg.Epoch >= r.processes[from].epoch {
			r.Why = "ALIVE"
			r.alive(from, &msg)
		}
	case Accuse:
		// Omega_l: silence by choice is not punished.
		if self := &r.processes[r.Self]; r.kind != omegaL || msg.Start == self.start {
			r.Why = "ACCUSE"
			self.acc = max(r.shared(), self.acc) + 1
		}
	}
}

// alive acts on an ALIVE of a life that has not ended.
func (r *rules) alive(from int, a *Alive) {
	p := &r.processes[from]
	if a.Epoch > p.epoch {
		r.suspect(from)
		p.born(r.Now, a.Epoch)
	}
	r.adopt(p, a.Wanted)
	p.acc = max(p.acc, a.Acc)
	local := r.Cfg.Rank(a.Local)
	if local >= 0 && local != r.Self {
		r.processes[local].acc = max(r.processes[local].acc, a.LocalAcc)
	}
	if a.Start < p.start { // of a phase that has ended
		return
	}
	p.start = a.Start
	if a.Number == 0 {
		p.active = false
		return
	}
	if a.Number > p.newest {
		p.newest, p.local = a.Number, local
	}
	p.active = r.observe(from, a) || p.active
}

// judge suspects those whose freshness points have passed.
func (r *rules) judge() {
	for i := range r.processes {
		if p := &r.processes[i]; i != r.Self && p.active && p.deadline <= r.Now {
			r.suspect(i)
			p.nfde.Forget()
			r.Why = "suspected"
		}
	}
}

// suspect drops a process from the active ones, and accuses it.
func (r *rules) suspect(i int) {
	p := &r.processes[i]
	switch {
	case !p.active || r.kind == omegaID:
	case r.kind == omegaLC:
		r.Send(i, Accuse{})
	default:
		r.Send(i, Accuse{Start: p.start})
	}
	p.active = false
}

func (r *rules) choose() {
	self, local := &r.processes[r.Self], r.Self
	for i := range r.processes {
		if r.processes[i].active && r.before(i, local) {
			local = i
		}
	}
	changed := local != self.local
	self.local, r.Leader = local, local
	for i := range r.processes {
		if r.kind == omegaLC && changed {
			r.hasten(i)
		}
		p := &r.processes[i]
		if r.kind == omegaLC && p.active && p.local >= 0 && r.before(p.local, r.Leader) {
			r.Leader = p.local
		}
	}
	r.Role = elector.Follower
	if r.Leader == r.Self {
		r.Role = elector.Leader
	}
	if leads := r.Leader == r.Self; r.kind == omegaL && r.sends != leads {
		r.turn(leads)
	}
}

// before reports whether a is preferred to b.
func (r *rules) before(a, b int) bool {
	x, y := r.processes[a].acc, r.processes[b].acc
	if r.kind == omegaID || x == y {
		return a < b
	}
	return x < y
}

// turn begins a phase of sending, or ends it and says so. Accusations for the phase before are
// void.
func (r *rules) turn(sends bool) {
	self := &r.processes[r.Self]
	r.sends, self.start = sends, max(r.shared(), self.start)+1
	for to := range r.processes {
		if r.hasten(to); !sends && to != r.Self {
			r.Send(to, r.news(to))
		}
	}
}
