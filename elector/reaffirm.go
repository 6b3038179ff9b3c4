package elector

import "github.com/bmqelect/bmqelect/lsn"

// challenge is the news that some node is in term t, higher than this leader's.
// The article cedes here, so that one node with an inflated term can unseat a
// healthy leader. This leader re-affirms itself instead: it proposes itself in
// a term above t and leads on, under the old one, until a quorum has voted. It
// does so once a heartbeat period at most: the sender says it again at the next
// heartbeat, and to the application each time is a new leadership.
func (m *Machine) challenge(from NodeID, msg *Message) {
	l := &m.state.Leader
	t, now := msg.Term, m.state.Now
	tooSoon := l.RaisedAt != 0 && now < l.RaisedAt.Add(m.cfg.Timing.HeartbeatBroadcast)
	if t <= m.state.Term || tooSoon || t >= lsn.MaxTerm || m.leaps(from, msg) {
		return
	}
	m.enterTerm(t + 1)
	l.RaisedAt, l.Reaffirm = now, Ballot{Term: t + 1}
}

// reaffirmed goes on under the new term. To the application it is a new
// leadership of the same node: LSNs start again.
func (m *Machine) reaffirmed(b Ballot) {
	l := &m.state.Leader
	l.Term, l.Reaffirm = b.Term, Ballot{}
	m.state.SeenLSN = lsn.LSN{Term: b.Term}
	m.transition(Leader, Reaffirmed, "")
	m.heartbeatAll()
}

// onInvalidHeartbeat is the word that the heartbeat's term is lower than the
// sender's.
func (m *Machine) onInvalidHeartbeat(from NodeID, msg *Message) {
	if m.state.Role != Leader || msg.Term <= m.state.Term {
		return
	}
	if !m.cfg.UnsafeNoScouting {
		m.challenge(from, msg)
		return
	}
	if m.leaps(from, msg) {
		return
	}
	m.enterTerm(msg.Term)
	m.stepDown(LeaderPreempted, from, "")
	m.backOff()
}
