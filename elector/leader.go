package elector

import (
	"slices"
	"time"

	"github.com/bmqelect/bmqelect/lsn"
	"github.com/bmqelect/bmqelect/scouting"
)

// becomeLeader begins the leadership that the ballot gave, and says so at once.
func (m *Machine) becomeLeader(b ballot) {
	m.become(Leader, Elected, "")
	s := &m.state
	s.Leader.Since = b.SentAt
	s.Leader.Period = m.cfg.Timing.HeartbeatBroadcast
	s.Leader.Settled = s.Linked &^ b.No // §9.6: a voter that has just started refuses
	s.SeenLSN = lsn.LSN{Term: b.Term}
	s.Turns.reset("", "", true)
	m.setNewer(newer{})
	m.renewLease()
	m.writeAnew()
	m.heartbeatAll()
}

// heartbeatAll asserts leadership to every member and arms the next broadcast: §7.1.
func (m *Machine) heartbeatAll() {
	l, now := m.state.Leader, m.state.Now
	late := time.Duration(0)
	if due(l.BroadcastAt, now) {
		late = now.Sub(l.BroadcastAt).Truncate(time.Microsecond)
	}
	m.slowDown()
	l.Sequence++
	l.BroadcastAt = m.nextBroadcast()
	repeats := m.repeats()
	m.heartbeat(AllMembers, late)
	if n := len(m.eff.Messages); n > 0 { // it is held if the term is not on disk yet
		m.eff.Messages[n-1].Repeats = repeats
	}
	if m.state.Writing.Change.Add.Node != "" {
		m.offerNewcomer()
	}
}

// heartbeat asserts leadership to one node, or to all. To one node it repeats the newest
// broadcast, in case the node has missed it; otherwise its detector ignores the repetition.
func (m *Machine) heartbeat(to NodeID, late time.Duration) {
	l, tell := m.state.Leader, m.asserts()
	if to == AllMembers {
		l.Told = tell
	}
	m.send(to, &Message{
		Kind: LeaderHeartbeat, Term: l.Term,
		Sequence: l.Sequence, SentAt: m.state.Now, LSN: tell.LSN, Successor: tell.Successor,
		Period: tell.Period, Late: late, Record: tell.Record, Committed: tell.Committed,
	})
}

// onHeartbeatAck renews the lease.
func (m *Machine) onHeartbeatAck(from NodeID, identity Identity, msg *Message) {
	l := m.state.Leader
	if m.state.Role != Leader || msg.Term != l.Term {
		return
	}
	voter, counts := m.genuine(from, identity)
	if !counts { // §15.13
		m.noteRecord(from, identity, voter, false, msg)
		return
	}
	lapsed := !m.supports(voter)
	if msg.Sequence > l.Sequence || !m.supported(voter, msg.SentAt) {
		m.report(AnomalyMalformed, from, msg)
		return
	}
	m.state.Linked = m.state.Linked.With(voter)
	m.noteSure(from, identity, voter, msg)
	m.noteFitness(voter, msg, lapsed)
	m.notePeriod(voter, msg.Period)
	m.noteRecord(from, identity, voter, true, msg)
	m.handoverAcked(from, voter, msg.SentAt)
}

// support holds, by voter, the send time of the newest proposal or heartbeat of
// this node that the voter has acked; 0 for none.
type support [scouting.MaxVoters]Time

// ack notes that voter acked what was sent at sentAt. It notes nothing and reports false if nothing
// can have been sent then, before since or in the future: such an echo could keep a lease alive
// for ever (§2.3).
func (m *Machine) ack(voter int, sentAt, since Time) bool {
	if sentAt < since || sentAt > m.state.Now {
		return false
	}
	by := &m.state.By[voter]
	by.Support = max(by.Support, sentAt)
	return true
}

// quorumAt is the send time of the newest message that a quorum of n voters has acked: the
// quorum-th newest ack, where self counts as an ack that never ends. It is 0 if fewer have acked.
// The support is used up.
func (s *support) quorumAt(self, n, quorum int) Time {
	s[self] = Never
	slices.Sort(s[:n])
	return s[n-quorum]
}

// supported counts voter's support as of sentAt, an echo of this leader's own
// clock; false if nothing was sent then.
func (m *Machine) supported(voter int, sentAt Time) bool {
	if !m.ack(voter, sentAt, m.state.Leader.Since) {
		return false
	}
	m.renewLease()
	return true
}

// supports reports whether voter's newest ack still backs the lease.
func (m *Machine) supports(voter int) bool {
	at := m.state.By[voter].Support
	return voter == m.set.self || at != 0 && at.Add(m.cfg.Timing.Lease) > m.state.Now
}

func (m *Machine) renewLease() {
	l := m.state.Leader
	l.LeaseEnd = max(l.LeaseEnd, m.lease())
}

// lease is the end of the lease that the acks to this candidate or leader back.
func (m *Machine) lease() Time {
	var acks support
	for i := range m.state.By {
		acks[i] = m.state.By[i].Support
	}
	return m.leaseFrom(&acks)
}

// leaseFrom is the end of the lease that these acks back: §6.2. Never if no ack is needed. The acks
// are used up.
func (m *Machine) leaseFrom(acks *support) Time {
	at := acks.quorumAt(m.set.self, len(m.set.voters), m.set.quorum)
	if m.cfg.UnsafeNoScouting || at == Never {
		return Never
	}
	return at.Add(m.cfg.Timing.Lease)
}

// checkLease ends a leadership whose lease has run out: §6.3.
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

// onInvalidHeartbeat acts on the word of a voter whose term is above that of a heartbeat.
func (m *Machine) onInvalidHeartbeat(from NodeID, msg *Message) {
	switch {
	case m.state.Role != Leader || msg.Term <= m.state.Term:
	case !m.cfg.UnsafeNoScouting:
		m.reaffirmAbove(from, msg)
	case !m.leaps(from, msg):
		m.enterTerm(msg.Term)
		m.stepDown(LeaderPreempted, from, "")
		m.backOff()
	}
}

// reaffirmAbove proposes this leader in a term above the one of msg: §7.9. The leader goes on in
// its old term until a quorum has voted. It proposes at most once a heartbeat period, because the
// sender repeats itself and each new term restarts the LSNs.
func (m *Machine) reaffirmAbove(from NodeID, msg *Message) {
	l := m.state.Leader
	term, now := msg.Term, m.state.Now
	tooSoon := l.RaisedAt != 0 && now < l.RaisedAt.Add(m.cfg.Timing.HeartbeatBroadcast)
	if term <= m.state.Term || tooSoon || term >= lsn.MaxTerm || m.leaps(from, msg) {
		return
	}
	m.enterTerm(term + 1)
	l.RaisedAt, l.Reaffirm = now, ballot{Term: term + 1}
	m.proposeIfDurable()
}

// reaffirmed goes on under the new term, in which LSNs start again: §7.11. Guarded work
// goes on.
func (m *Machine) reaffirmed(term lsn.Term) {
	l := m.state.Leader
	l.Term, l.Reaffirm, l.Covered = term, ballot{}, false
	w := m.state.writing() // §15.6: an election here, too
	*w = writing{Kept: w.Kept, Bind: w.Bind, Change: w.Change}
	m.state.SeenLSN = lsn.LSN{Term: term}
	m.transition(Leader, Reaffirmed, "")
	m.writeAnew()
	m.heartbeatAll()
}
