package elector

import "time"

// mayStand reports whether this node may stand for election now.
func (m *Machine) mayStand() bool {
	s := &m.state
	return m.cfg.mayVote && !m.cfg.NotCandidate && !s.Unable && s.RestEnd <= s.Now
}

// eligible notes whether the application can lead here.
func (m *Machine) eligible(able bool) {
	s := &m.state
	if s.Unable == !able {
		return
	}
	s.Unable = !able
	if able {
		m.ableAgain()
		return
	}
	m.withdraw()
	if to := m.unableSuccessor(); to != "" {
		m.handOverTo(to, HandoverUnable)
		m.greet(to)
	}
}

// unableSuccessor is to whom a leader whose application cannot lead hands over;
// "" for nobody: it leads on meanwhile, since a cession for nobody's sake would
// help nobody.
func (m *Machine) unableSuccessor() NodeID {
	if m.state.Role != Leader || !m.state.Unable || m.state.Leader.Handover.Cause >= HandoverUnable {
		return ""
	}
	return m.BestSuccessor()
}

// withdraw ends what this node undertook to be elected.
func (m *Machine) withdraw() {
	switch m.state.Role {
	case Follower:
		m.closeRound()
	case Candidate:
		m.cede("")
		m.become(Follower, Resigned, "")
	}
}

// ableAgain lets a node stand that did not, and keeps a leader that was about to
// hand over because it could not lead.
func (m *Machine) ableAgain() {
	s := &m.state
	f := &s.Follower
	switch {
	case !m.mayStand():
	case s.Role == Follower && f.Leader == "" && f.Tentative == "" && f.StandAt == 0 && !f.Round.IsOpen():
		m.backOff()
	case s.Role == Leader && s.Leader.Handover.Cause == HandoverUnable && !s.Leader.Handover.Stopping:
		s.Leader.Handover = Handover{}
	}
}

// resign steps down, and rests.
func (m *Machine) resign(rest time.Duration) {
	s := &m.state
	rest = min(max(rest, 0), maxTimer)
	if s.Role == Dormant || s.Role != Leader && rest == 0 {
		return
	}
	s.RestEnd = 0
	if rest > 0 {
		s.RestEnd = s.Now.Add(rest)
	}
	m.withdraw()
	if s.Role == Leader && m.mayReplace(HandoverResign) {
		m.giveUpOffice(HandoverResign)
	}
}

// restOver ends a rest whose time has come.
func (m *Machine) restOver() {
	if due(m.state.RestEnd, m.state.Now) {
		m.state.RestEnd = 0
		m.ableAgain()
	}
}
