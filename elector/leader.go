package elector

import "github.com/bmqelect/bmqelect/lsn"

// becomeLeader takes the office that the ballot gave, and says so at once.
func (m *Machine) becomeLeader(b Ballot) {
	s := &m.state
	s.Role, s.Candidate = Leader, CandidateState{}
	s.Leader = LeaderState{Term: b.Term, Since: b.SentAt, Support: b.Support}
	s.SeenLSN = lsn.LSN{Term: b.Term}
	m.renewLease()
	m.transition(Candidate, Elected, "")
	m.heartbeatAll()
}

// heartbeatAll asserts leadership to every member and arms the next broadcast.
func (m *Machine) heartbeatAll() {
	l := &m.state.Leader
	l.Sequence++
	l.BroadcastAt = m.nextBeat()
	m.broadcast(m.heartbeat())
}

// greet asserts leadership to one node.
func (m *Machine) greet(to NodeID) {
	m.state.Leader.Sequence++
	m.send(to, m.heartbeat())
}

// nextBeat is the next multiple of the period on the node's clock: at most one
// period ahead, and the same for all elections that the node leads, so that their
// heartbeats travel together.
func (m *Machine) nextBeat() Time {
	period := Time(m.cfg.Timing.HeartbeatBroadcast)
	return (m.state.Now/period + 1) * period
}

func (m *Machine) heartbeat() Message {
	l := &m.state.Leader
	return Message{
		Kind: LeaderHeartbeat, Term: l.Term,
		Sequence: l.Sequence, SentAt: m.state.Now, LSN: m.state.SeenLSN,
	}
}

// broadcastDue is the leader's period. An open re-affirmation is proposed again,
// since a proposal or its answer may have been lost.
func (m *Machine) broadcastDue() {
	m.considerHandover()
	m.heartbeatAll()
	if m.state.Leader.Reaffirm.Sent {
		m.proposeToAll()
	}
}

// onHeartbeatAck renews the lease.
func (m *Machine) onHeartbeatAck(from NodeID, msg *Message) {
	l := &m.state.Leader
	if m.state.Role != Leader || msg.Term != l.Term {
		return
	}
	voter, _ := m.voter(from)
	lapsed := !m.supports(voter)
	if msg.Sequence > l.Sequence || !m.supported(voter, msg.SentAt) {
		m.refuse(AnomalyMalformed, from, msg)
		return
	}
	m.present(from)
	m.noteFit(voter, msg, lapsed)
	m.handoverAcked(from, msg.SentAt)
}

// supported counts voter's support as of sentAt, an echo of this leader's own
// clock; false if nothing was sent then.
func (m *Machine) supported(voter int, sentAt Time) bool {
	l := &m.state.Leader
	if !l.Support.ack(voter, sentAt, l.Since, m.state.Now) {
		return false
	}
	m.renewLease()
	return true
}

// renewLease lets the lease run until lease after the send time of the newest
// message that a quorum has acked. Send time is never later than receipt, so it
// ends before the first of the promises behind it.
func (m *Machine) renewLease() {
	l := &m.state.Leader
	l.LeaseEnd = max(l.LeaseEnd, m.leaseFrom(&l.Support))
}

// leaseFrom is when a lease ends that these acks back; Never if it needs none.
func (m *Machine) leaseFrom(acks *Support) Time {
	at := acks.quorumAt(m.cfg.self, len(m.cfg.voters), m.cfg.quorum)
	if m.cfg.UnsafeNoScouting || at == Never {
		return Never
	}
	return at.Add(m.cfg.Timing.Lease)
}

// checkLease ends a leadership whose lease has run out.
func (m *Machine) checkLease() {
	if m.state.Role == Leader && m.state.Now >= m.state.Leader.LeaseEnd {
		m.stepDown(LeaseExpired, "", "")
		m.backOff()
	}
}

// stepDown releases the promises made to this leader and turns it into a
// follower of nobody.
func (m *Machine) stepDown(why Reason, peer, successor NodeID) {
	m.cede(successor)
	m.become(Follower, why, peer)
}

// BestSuccessor is the voter that this leader would hand over to: of those
// that support it now, are connected and may stand, the highest in rank; ""
// if there is none or this node does not lead.
func (m *Machine) BestSuccessor() NodeID {
	if m.state.Role != Leader {
		return ""
	}
	return m.best(func(int) bool { return true })
}
