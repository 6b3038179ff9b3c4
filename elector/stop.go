package elector

// stop leaves, after this leader's guarded work unless that is abrupt.
func (m *Machine) stop(abrupt bool) {
	s := &m.state
	switch {
	case s.Role == Dormant:
	case abrupt:
		m.depart()
	case s.Role == Leader && s.Leader.Working:
		s.Leaving = true
		m.giveUpOffice(HandoverStop)
	default:
		m.leave()
	}
}

// leave cedes what this node holds and stops taking part.
func (m *Machine) leave() {
	m.cede(m.successor())
	m.depart()
}

// depart stops taking part without releasing any promise.
func (m *Machine) depart() {
	m.broadcast(Message{Kind: NodeUnavailable, Term: m.state.Durable})
	m.become(Dormant, Stopped, "")
	m.state.Leaving = false
	m.held = m.held[:0]
}

// leaveIfTold ends the wait of a Stop for guarded work when the leadership ended
// first, and the work with it.
func (m *Machine) leaveIfTold() {
	if m.state.Leaving && m.state.Role != Leader {
		m.leave()
	}
}
