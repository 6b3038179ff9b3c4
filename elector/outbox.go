package elector

import (
	"slices"

	"github.com/bmqelect/bmqelect/lsn"
)

// send puts a message among the effects. §2.4: a message that speaks for a term above those
// reserved on disk is held back until it is reserved. No other code puts messages there.
func (m *Machine) send(to NodeID, msg *Message) {
	if msg.Record.Term != 0 { // §15.14
		r := &m.state.Record.Accepted
		if msg.Offer != nil {
			r = msg.Offer
		}
		msg.Lineage, msg.Founded = r.Lineage, r.Founded
	}
	if msg.Term > m.state.Durable {
		m.hold(Envelope{To: to, Message: *msg})
		return
	}
	m.eff.Messages = append(m.eff.Messages, Envelope{To: to, Message: *msg})
}

// hold keeps e until the disk is ready, by the rule of §2.5, which the queues of package netmesh
// obey as well: a newer message of the same kind to the same node replaces the older one, so that
// a stuck disk cannot fill the memory. The newer message goes to the end, so that it does not
// overtake messages between the two.
func (m *Machine) hold(e Envelope) {
	if m.held == nil {
		m.held = &[]Envelope{}
	}
	others := slices.DeleteFunc(*m.held, func(h Envelope) bool {
		return h.To == e.To && h.Message.Kind == e.Message.Kind
	})
	*m.held = append(others, e)
}

// outdated reports whether a message that waited for the disk is not true any more (§2.6): it is
// the question of a closed round, or supports a node that gave up or was overtaken meanwhile.
func (m *Machine) outdated(e *Envelope) bool {
	s, msg := &m.state, &e.Message
	switch {
	case msg.Kind == ElectionScouting:
		return s.Role != Follower || msg.Round != s.Seek.Round.ID
	case msg.Kind == ElectionScoutingResponse && msg.WillVote:
		return !m.weigh(asked(e.To, msg)).WillVote
	case msg.Kind == ElectionProposalResponse && msg.WillVote:
		return !m.votedFor(e.To, msg.ProposedTerm)
	case msg.Kind == HeartbeatAck:
		return s.Follower.Leader != e.To || s.Follower.LeaderTerm != msg.Term
	}
	return false
}

// persisted goes on with what waited for the disk.
func (m *Machine) persisted(term lsn.Term, record lsn.LSN) {
	s := &m.state
	if s.Role == Dormant {
		return
	}
	m.release(term)
	m.stored(record)
}

// release sends the messages that waited for term, in the order in which they were held.
func (m *Machine) release(term lsn.Term) {
	s := &m.state
	if term <= s.Durable || term > s.Asked {
		return
	}
	f, before := s.Follower, s.Durable
	s.Durable = term
	waiting := m.held
	m.held = nil
	for i := 0; waiting != nil && i < len(*waiting); i++ {
		if e := &(*waiting)[i]; !m.outdated(e) {
			m.send(e.To, &e.Message) // holds again what waits for a higher term
		}
	}
	if f.LeaderTerm > before && f.LeaderTerm <= term && m.set.mayVote &&
		s.Promise.To == f.Leader && !m.mayHaveMoved(f.LeaderTerm) {
		// The acknowledgement of its leader has waited. Beats may have been answered meanwhile: §16.1.
		m.promiseTo(f.Leader, f.LeaderTerm)
		m.followed = true
	}
	m.proposeIfDurable()
}
