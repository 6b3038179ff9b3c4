package elector

// prepared notes whether the application is prepared to lead at once; acks tell the leader: §9.14.
func (m *Machine) prepared(ready bool) { m.state.Prepares, m.state.Cold = true, !ready }

// Heir is the node that the leader which this node follows, or followed last, names as its
// successor; "" for none. A leader has none.
func (m *Machine) Heir() NodeID { return m.state.Turns.Heir }

// HeirIsCold reports whether this node leads, and the application of its best successor is not
// prepared.
func (m *Machine) HeirIsCold() bool {
	cold := m.state.Leader.Cold // none unless LEADER
	if cold == 0 {
		return false
	}
	voter, ok := m.voter(m.successor())
	return ok && cold.Has(voter)
}

// waitsForTarget reports whether a handover waits on, although its target answers, because the
// application there is not prepared yet.
func (m *Machine) waitsForTarget(voter int) bool {
	h := &m.state.Leader.Handover
	if m.state.Now >= h.ReadyBy || !m.state.Leader.Cold.Has(voter) {
		return false
	}
	h.End = h.ReadyBy
	return true
}

// awaitPrepared lets a leader that gives up in any case wait for its best successor, if that is not
// prepared, and reports whether it waits.
func (m *Machine) awaitPrepared(c handoverCause) bool {
	if m.cfg.Prepare == 0 || !m.HeirIsCold() {
		return false
	}
	m.askTarget(m.successor(), c)
	m.state.Leader.Handover.End = m.state.Leader.Handover.ReadyBy
	return true
}
