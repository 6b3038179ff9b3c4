package elector

// linkUp tells the other end of a new link what it has missed: a heartbeat, the
// open round, the open proposal.
func (m *Machine) linkUp(peer NodeID) {
	s := &m.state
	voter, isVoter := m.voter(peer)
	m.present(peer)
	switch {
	case s.Role == Leader:
		m.greet(peer)
		if isVoter && s.Leader.Reaffirm.Sent {
			m.propose(voter)
		}
	case s.Role == Candidate && isVoter:
		if b := &s.Candidate.Ballot; b.Sent && !(b.Yes | b.No).Has(voter) {
			m.propose(voter)
		}
	case s.Role == Follower && isVoter && s.Follower.Round.IsOpen():
		m.scout(voter)
	}
}

// present notes that a voter takes part, which may have said before that it does
// no more, on a link that stayed.
func (m *Machine) present(id NodeID) {
	if voter, ok := m.voter(id); ok {
		m.state.Linked = m.state.Linked.With(voter)
	}
}

// linkDown is a hint that the peer is gone: it ends following, never a promise.
func (m *Machine) linkDown(peer NodeID) {
	if voter, ok := m.voter(peer); ok {
		m.state.Linked = m.state.Linked.Without(voter)
		m.state.Leader.FitSince[voter] = 0
	}
	m.unavailable(peer)
	m.settle()
}

// settle acts on an open round or proposal that a lost link may have decided.
func (m *Machine) settle() {
	switch {
	case m.state.Role == Follower && m.state.Follower.Round.IsOpen():
		m.settleRound()
	case m.state.Role == Candidate && m.ballot().Sent:
		m.settleBallot()
	}
}

// unavailable gives up the leader peer at once, and looks for another.
func (m *Machine) unavailable(peer NodeID) {
	if m.state.Role == Follower && m.state.Follower.Leader == peer {
		m.loseLeader(LeaderUnavailable, peer)
		m.backOff()
	}
}

// died ends every promise to a process that is proven gone.
func (m *Machine) died(peer NodeID) {
	s := &m.state
	if s.Promise.To == peer {
		s.Promise = Promise{}
	}
	m.drop(peer)
	m.unavailable(peer)
	if s.Role == Follower && s.Follower.Tentative == peer {
		m.forgetLeader()
		m.backOff()
	}
	m.hindranceGone()
}
