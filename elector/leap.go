package elector

import "github.com/bmqelect/bmqelect/lsn"

// climb is the present minute, in which all messages together may raise the term only by a bound:
// §8.1. The zero climb is over.
type climb struct {
	From lsn.Term // the term when the minute began
	End  Time     // of the minute
}

// rise returns how far a message may raise this node's term or floor, which is now at from,
// towards a term: §8.1. The floor stays in reach of the other nodes, which climb no faster. A
// minute begins with the first rise that is not near, once the minute before is over.
func (m *Machine) rise(from, towards lsn.Term) lsn.Term {
	s, b := &m.state, &m.cfg.bounds
	if towards <= s.Term+b.Near {
		return towards
	}
	if s.Now >= s.Climb.End {
		s.rare().Climb = climb{From: s.Term, End: s.Now.Add(b.ClimbFor)}
	}
	return min(towards, max(s.Term+b.Near, min(from+b.Leap, s.Climb.From+b.Climb)))
}

// leaps reports, also to the driver, that the term of a message is too far above this
// node's own to be believed at once: §8.1.
func (m *Machine) leaps(from NodeID, msg *Message) bool {
	if m.rise(m.state.Term, msg.Term) == msg.Term {
		return false
	}
	m.report(AnomalyTermLeap, from, msg)
	return true
}

// climb goes one leap towards the term of a heartbeat or proposal that leaps: §8.2. The node
// neither follows nor votes yet, because leaders and candidates repeat themselves. A node that
// leads, stands or follows need not climb. An open round ends: the node has passed the term that
// the round asks for, and if it won it would lead in a term in which nobody voted.
func (m *Machine) climb(towards lsn.Term) {
	if m.state.Role != Follower || m.state.Follower.Leader != "" {
		return
	}
	m.enterTerm(m.rise(m.state.Term, towards))
	if m.state.Seek.Round.IsOpen() {
		m.closeRound()
		m.backOff()
	}
}

// learn notes the term of a refusal as the floor of the next round, which rises by one
// leap a refusal at most: §8.3.
func (m *Machine) learn(from NodeID, msg *Message) {
	s := &m.state
	term := m.rise(max(s.Term, s.RefusedTerm), msg.Term)
	if term < msg.Term {
		m.report(AnomalyTermLeap, from, msg)
	}
	s.RefusedTerm = max(s.RefusedTerm, term)
	m.reserve()
}
