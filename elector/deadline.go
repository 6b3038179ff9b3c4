package elector

// expire acts on every deadline that has come.
func (m *Machine) expire() {
	s := &m.state
	if s.Role != Dormant {
		m.restOver()
	}
	switch s.Role {
	case Follower:
		m.expireFollower()
	case Candidate:
		m.expireCandidate()
	case Leader:
		m.expireLeader()
	}
}

func (m *Machine) expireLeader() {
	s := &m.state
	m.checkLease()
	if s.Role == Leader && due(s.Leader.Handover.End, s.Now) {
		m.handoverDue()
	}
	if s.Role == Leader && s.Now >= s.Leader.BroadcastAt {
		m.broadcastDue()
	}
}

func (m *Machine) expireCandidate() {
	c := &m.state.Candidate
	switch {
	case due(c.End, m.state.Now):
		m.electionFailed()
	case due(c.ProposeAt, m.state.Now):
		m.proposeToAll()
	}
}

func (m *Machine) expireFollower() {
	now, f := m.state.Now, &m.state.Follower
	if due(f.SilentAt, now) {
		m.silentDue()
	}
	if due(f.RoundEnd, now) {
		m.scoutingFailed()
	}
	if due(f.StandAt, now) {
		m.standDue()
	}
}

// due reports whether an armed deadline has come.
func due(at, now Time) bool { return at != 0 && at <= now }

// nextDeadline is when expire has something to do again.
func (m *Machine) nextDeadline() Time {
	s := &m.state
	switch s.Role {
	case Follower:
		f := &s.Follower
		return earliest(f.SilentAt, f.RoundEnd, f.StandAt, s.RestEnd)
	case Candidate:
		return earliest(s.Candidate.ProposeAt, s.Candidate.End)
	case Leader:
		return earliest(s.Leader.BroadcastAt, s.Leader.LeaseEnd, s.Leader.Handover.End, s.RestEnd)
	default:
		return Never
	}
}

// earliest is the first of the armed deadlines; Never if none is armed.
func earliest(deadlines ...Time) Time {
	first := Never
	for _, d := range deadlines {
		if d != 0 {
			first = min(first, d)
		}
	}
	return first
}
