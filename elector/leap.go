package elector

import "github.com/bmqelect/bmqelect/lsn"

// maxLeap is by how much one message may raise this node's term. An emergency
// raises it by 10^9; a term that is farther above is damaged or a lie, unless this
// node was away for several emergencies. Terms are 2^63: at one leap a heartbeat
// period of half a second they last for more than thirty years.
const maxLeap = 1 << 32

// leaps reports, and tells, that the term of a message is too far above this
// node's own to be believed at once.
func (m *Machine) leaps(from NodeID, msg *Message) bool {
	if msg.Term <= m.state.Term+maxLeap {
		return false
	}
	m.refuse(AnomalyTermLeap, from, msg)
	return true
}

// climb goes one leap towards a heartbeat or proposal that leaps, so that a node
// that was away for long arrives at the cluster's term: leaders and candidates
// repeat themselves. It neither follows nor votes yet. A node that leads, stands
// or follows has no need to.
func (m *Machine) climb() {
	if m.state.Role == Follower && m.state.Follower.Leader == "" {
		m.enterTerm(m.state.Term + maxLeap)
	}
}

// learn notes a term heard of in a refusal. It is only the floor of the next
// round: without it a cluster whose one electable node lags stays leaderless. It
// rises by one leap a refusal, too.
func (m *Machine) learn(from NodeID, msg *Message) {
	s := &m.state
	limit := max(s.Term, s.Learnt) + maxLeap
	if msg.Term > limit {
		m.refuse(AnomalyTermLeap, from, msg)
	}
	s.Learnt = max(s.Learnt, min(msg.Term, limit, lsn.MaxTerm))
}
