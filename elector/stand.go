package elector

import (
	"math/bits"
	"time"
)

// backOff arms the random wait that precedes every attempt to stand.
func (m *Machine) backOff() { m.standIn(m.randomWait()) }

// standIn lets the node stand after d, in place of whatever was armed.
func (m *Machine) standIn(d time.Duration) {
	f := &m.state.Follower
	f.StandAt = m.state.Now.Add(d)
	f.Discovering, f.Postponed = false, false
}

// randomWait is uniform in [0, MaxRandomWait]. The successor that a leader
// named waits a hundredth of it: the others stay back for its sake, and refuse
// only until the cession has reached them as well.
func (m *Machine) randomWait() time.Duration {
	limit := m.cfg.Timing.MaxRandomWait
	if m.state.Now < m.state.Follower.SuccessorUntil {
		limit /= 100
	}
	hi, _ := bits.Mul64(m.draw(), uint64(limit)+1)
	return time.Duration(hi)
}

// draw returns the next random word of this step.
func (m *Machine) draw() uint64 {
	// A step may draw more than once; the finaliser of splitmix64 spreads the
	// one word that came in.
	m.random += 0x9e3779b97f4a7c15
	z := m.random
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// standDue acts on the end of a wait.
func (m *Machine) standDue() {
	f := &m.state.Follower
	f.StandAt = 0
	if f.Discovering {
		m.backOff()
		return
	}
	m.stand()
}

// stand opens an election if nothing hinders this node, and else waits for the
// hindrance to pass.
func (m *Machine) stand() {
	f := &m.state.Follower
	f.StandAt, f.Discovering, f.Postponed = 0, false, false
	if !m.mayStand() || f.Leader != "" || f.Tentative != "" {
		return
	}
	if end := m.boundUntil(); end > m.state.Now {
		f.StandAt, f.Postponed = end, true
		return
	}
	term := m.nextTerm()
	switch {
	case !term.Valid():
		return // out of terms: nobody may propose one
	case m.cfg.UnsafeNoScouting:
		m.becomeCandidate(m.state.Term + 1)
	default:
		m.openRound(term)
	}
}

// boundUntil is when the embargo and the outstanding promise to another have
// both ended.
func (m *Machine) boundUntil() Time {
	end := m.state.EmbargoEnd
	if p := m.promise(); p.To != "" {
		end = max(end, p.Until)
	}
	return end
}

// hindranceGone lets a node that only waited for a promise to end stand at once.
func (m *Machine) hindranceGone() {
	if m.state.Role == Follower && m.state.Follower.Postponed {
		m.stand()
	}
}
