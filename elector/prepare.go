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

// waitsForTarget reports whether a handover waits on, although its target answers: it may have
// started a moment ago, and cannot stand yet (§9.2), or the application there is not prepared.
func (m *Machine) waitsForTarget(voter int) bool {
	l, t := m.state.Leader, &m.cfg.Timing
	h := &l.Handover
	switch {
	case h.Cause <= handoverTransfer && !l.Settled.Has(voter):
		h.End = h.Asked.Add(t.Promise() + t.HeartbeatBroadcast + t.ElectionResult)
	case m.state.Now < h.ReadyBy && l.Cold.Has(voter):
		h.End = h.ReadyBy
	default:
		return false
	}
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
