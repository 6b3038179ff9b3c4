package elector

// expire acts on every deadline that has come.
func (m *Machine) expire() {
	s := &m.state
	switch s.Role {
	case Follower:
		m.expireFollower()
	case Candidate:
		if s.Now >= s.Candidate.End {
			m.electionFailed()
		}
	case Leader:
		m.checkLease()
		if s.Role == Leader && s.Now >= s.Leader.BroadcastAt {
			m.broadcastDue()
		}
		if due(s.Leader.Transfer.End, s.Now) {
			s.Leader.Transfer = Transferring{}
		}
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
		return earliest(f.SilentAt, f.RoundEnd, f.StandAt)
	case Candidate:
		return s.Candidate.End
	case Leader:
		return min(s.Leader.BroadcastAt, s.Leader.LeaseEnd, earliest(s.Leader.Transfer.End))
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
