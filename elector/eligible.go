package elector

import "time"

// eligible notes whether the application can lead here: §9.9.
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
		m.askTarget(to, handoverUnable)
		m.heartbeat(to, 0)
	}
}

// unableSuccessor is the node to which a leader hands over whose application cannot lead; "" for
// none. Without a successor the leader goes on, because a cession would help nobody.
func (m *Machine) unableSuccessor() NodeID {
	s := &m.state
	if s.Role == Leader && s.Unable && !m.paused() && s.Leader.Handover.Cause < handoverUnable {
		return m.BestSuccessor()
	}
	return ""
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

// ableAgain lets a node stand again, and cancels the handover of a leader that could not lead.
func (m *Machine) ableAgain() {
	s := &m.state
	f, k, h := s.Follower, s.Seek, &s.Leader.Handover
	if !m.mayStand() || m.keptBack() {
		return
	}
	idle := f.Leader == "" && f.AwaitedLeader == "" && k.StandAt == 0 && !k.Round.IsOpen()
	switch {
	case s.Role == Follower && idle && m.alone(): // §3.3
		m.stand()
	case s.Role == Follower && idle:
		m.backOff()
	case s.Role == Leader && h.Cause == handoverUnable && !h.Stopping:
		*h = Handover{}
	}
}

// pause begins or ends a pause, in which leadership stays where it is: §9.13. It cancels a
// handover for which nobody asked, unless the guarded work was told to stop.
func (m *Machine) pause(d time.Duration) {
	s := &m.state
	s.rare().PauseEnd = 0
	if d > 0 {
		s.rare().PauseEnd = s.Now.Add(min(d, maxTimer))
	}
	if m.keptBack() {
		m.withdraw()
	}
	h := &s.Leader.Handover
	if s.Role == Leader && m.paused() && h.Cause < handoverTransfer && !h.Stopping {
		*h = Handover{}
	}
	m.ableAgain()
}

// resign steps down, and rests: §9.10.
func (m *Machine) resign(rest time.Duration) {
	s := &m.state
	rest = min(max(rest, 0), maxTimer)
	if s.Role == Dormant || s.Role != Leader && rest == 0 {
		return
	}
	s.rare().RestEnd = 0
	if rest > 0 {
		s.rare().RestEnd = s.Now.Add(rest)
	}
	m.withdraw()
	if s.Role == Leader && m.mayReplace(handoverResign) {
		m.startHandover(handoverResign)
	}
}
