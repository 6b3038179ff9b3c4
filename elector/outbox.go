package elector

import "github.com/bmqelect/bmqelect/lsn"

// send puts a message among the effects. This is the choke point of "persist
// before send": a message that speaks for a term which is not on disk yet is
// held back until it is.
func (m *Machine) send(to NodeID, msg Message) {
	if msg.Term > m.state.Durable {
		m.hold(Envelope{to, msg})
		return
	}
	m.eff.Messages = append(m.eff.Messages, Envelope{to, msg})
}

func (m *Machine) broadcast(msg Message) { m.send(AllMembers, msg) }

// hold keeps e for the disk. A newer message of the same kind to the same node
// replaces an older one, so that a stuck disk cannot fill the memory.
func (m *Machine) hold(e Envelope) {
	for i := range m.held {
		if m.held[i].To == e.To && m.held[i].Message.Kind == e.Message.Kind {
			m.held[i] = e
			return
		}
	}
	m.held = append(m.held, e)
}

// persisted releases what waited for term, in the order in which it came.
func (m *Machine) persisted(term lsn.Term) {
	s := &m.state
	if s.Role == Dormant || term <= s.Durable || term > s.Term {
		return
	}
	s.Durable = term
	waiting := m.held
	m.held = m.held[:0]
	for _, e := range waiting {
		m.send(e.To, e.Message) // holds again what waits for a higher term
	}
	m.proposeIfDurable()
}
