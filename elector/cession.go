package elector

import "github.com/bmqelect/bmqelect/lsn"

// cede releases the promises made to this node, up to the highest term in which it leads or has
// proposed itself. It does nothing if the node asked for none.
func (m *Machine) cede(successor NodeID) {
	if m.cfg.UnsafeNoScouting && successor == "" {
		return // the unextended algorithm knows no promises
	}
	term := m.state.Leader.Term
	if b := m.ballot(); b.Sent {
		term = max(term, b.Term)
	}
	if term != 0 {
		m.send(AllMembers, &Message{Kind: LeadershipCession, Term: term, Successor: successor})
	}
}

// hasCeded reports whether id gave up this node's term, so that nothing of that
// leadership counts any more.
func (m *Machine) hasCeded(id NodeID, term lsn.Term) bool {
	voter, ok := m.voter(id)
	return term == m.state.Term && (ok && m.state.Ceded.Has(voter) || id == m.state.CededOut)
}

// onLeadershipCession releases what this node promised to the sender and, if it
// followed or expected the sender, looks for another leader.
func (m *Machine) onLeadershipCession(from NodeID, msg *Message) {
	s := &m.state
	switch voter, ok := m.voter(from); {
	case msg.Term != s.Term:
	case ok:
		s.Ceded = s.Ceded.With(voter)
	default:
		s.rare().CededOut = from
	}
	if s.Role != Follower {
		return // it holds no promise and follows nobody
	}
	released := s.Promise.To == from && s.Promise.Term <= msg.Term
	if released { // §6.4
		s.Promise = promise{}
	}
	f := s.Follower
	// A cession of an older leadership comes too late.
	followed := f.Leader == from && f.LeaderTerm <= msg.Term
	expected := f.Leader == "" && f.AwaitedLeader == from && s.Term <= msg.Term
	switch {
	case followed && msg.Successor != "":
		m.loseLeader(Transferred, from)
	case followed:
		m.loseLeader(LeaderCeded, from)
	case expected:
		m.forgetLeader()
	case released && f.Leader != "": // §15.4: an observer votes; it promises nothing to its leader
		return
	case released && msg.Successor != "": // the node had lost sight of the leader before
	case released:
		m.retryStand()
		return
	default:
		return
	}
	m.standAfterCession(msg.Successor)
	m.answerAgain()
}

// standAfterCession arms the next attempt to stand: §9.7. The named successor stands at once. The
// others wait until it had the time for an election, or is proven dead. Nobody waits for a voter
// to which it has no link, or for a name that is no voter's.
func (m *Machine) standAfterCession(successor NodeID) {
	voter, isVoter := m.voter(successor)
	switch {
	case successor == m.cfg.Self && isVoter:
		m.state.seek().SuccessorUntil = m.state.Now.Add(m.cfg.Timing.ElectionResult)
		m.stand()
	case isVoter && m.state.Linked.Has(voter):
		m.standIn(m.cfg.Timing.ElectionResult + m.randomWait())
		m.state.seek().Ahead = successor
	default:
		m.backOff()
	}
}
