package omega

import (
	"math"

	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
)

// unheard is before any reading of the clock.
const unheard = algorithm.Time(math.MinInt64)

// join starts a life. A process is its own leader until it hears of another.
func (m *machine) join(now, clock algorithm.Time) {
	m.running, m.skew, m.epoch = true, clock-now, clock
	for i := range m.processes {
		m.processes[i] = process{link: link{eta: m.eta}}
		m.processes[i].born(now, unheard)
	}
	self := &m.processes[m.self]
	self.active, self.acc, self.start, self.local = true, clock, clock, m.self
	m.sends = m.kind != omegaL // there, it begins when it leads
}

// receive acts on a message, and names the rule by which the leader may change.
func (m *machine) receive(now algorithm.Time, from int, msg algorithm.Message) (rule string) {
	if from < 0 || from == m.self || !m.running {
		return ""
	}
	switch msg := msg.(type) {
	case Alive:
		if msg.Epoch < m.processes[from].epoch {
			return ""
		}
		m.alive(now, from, &msg)
		return "ALIVE"
	case Accuse:
		// Omega_l: silence by choice is not punished.
		if self := &m.processes[m.self]; m.kind != omegaL || msg.Start == self.start {
			self.acc = max(now+m.skew, self.acc) + 1
			return "ACCUSE"
		}
	}
	return ""
}

// alive acts on an ALIVE of a life that has not ended.
func (m *machine) alive(now algorithm.Time, from int, a *Alive) {
	p := &m.processes[from]
	if a.Epoch > p.epoch {
		m.suspect(from)
		p.born(now, a.Epoch)
	}
	m.adopt(now, p, a.Wanted)
	p.acc = max(p.acc, a.Acc)
	local := m.rank(a.Local)
	if local >= 0 && local != m.self {
		m.processes[local].acc = max(m.processes[local].acc, a.LocalAcc)
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
	p.active = m.observe(now, from, a) || p.active
}

// judge suspects those whose freshness points have passed.
func (m *machine) judge(now algorithm.Time) (rule string) {
	for i := range m.processes {
		if p := &m.processes[i]; i != m.self && p.active && p.deadline <= now {
			m.suspect(i)
			p.nfde.Forget()
			rule = "suspected"
		}
	}
	return rule
}

// suspect drops a process from the active ones, and accuses it.
func (m *machine) suspect(i int) {
	p := &m.processes[i]
	switch {
	case !p.active || m.kind == omegaID:
	case m.kind == omegaLC:
		m.send(i, Accuse{})
	default:
		m.send(i, Accuse{Start: p.start})
	}
	p.active = false
}

// choose chooses the leader.
func (m *machine) choose(now algorithm.Time) {
	self, local := &m.processes[m.self], m.self
	for i := range m.processes {
		if m.processes[i].active && m.before(i, local) {
			local = i
		}
	}
	changed := local != self.local
	self.local, m.leader = local, local
	for i := range m.processes {
		if m.kind == omegaLC && changed {
			m.hasten(now, i)
		}
		p := &m.processes[i]
		if m.kind == omegaLC && p.active && p.local >= 0 && m.before(p.local, m.leader) {
			m.leader = p.local
		}
	}
	if leads := m.leader == m.self; m.kind == omegaL && m.sends != leads {
		m.turn(now, leads)
	}
}

// before reports whether a is preferred to b.
func (m *machine) before(a, b int) bool {
	x, y := m.processes[a].acc, m.processes[b].acc
	if m.kind == omegaID || x == y {
		return a < b
	}
	return x < y
}

// turn begins a phase of sending, or ends it and says so. Accusations for the phase before are
// void.
func (m *machine) turn(now algorithm.Time, sends bool) {
	self := &m.processes[m.self]
	m.sends, self.start = sends, max(now+m.skew, self.start)+1
	for to := range m.processes {
		if m.hasten(now, to); !sends && to != m.self {
			m.send(to, m.news(to))
		}
	}
}
