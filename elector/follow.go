package elector

import (
	"slices"
	"time"

	"github.com/bmqelect/bmqelect/lsn"
)

// onLeaderHeartbeat follows a leader of this term or a higher one.
func (m *Machine) onLeaderHeartbeat(from NodeID, msg *Message) {
	s := &m.state
	switch {
	case s.Role == Leader && msg.Term == s.Leader.Term:
		m.onDuplicateLeader(from, msg)
	// §7.10: a leader that re-affirms itself goes on under the old term until a quorum
	// has written the new one. It needs the acks of those that voted for it.
	case msg.Term < s.Term && s.Vote == from &&
		s.Follower.Leader == from && s.Follower.LeaderTerm == msg.Term:
		m.follow(from, msg)
	case msg.Term < s.Term:
		if m.set.mayVote || m.hasRecord() { // §7.4: an observer's term binds nobody
			m.send(from, &Message{Kind: InvalidHeartbeat, Term: s.Term})
		}
	case m.hasCeded(from, msg.Term): // §7.3: it was sent before the cession and arrived after it
	case m.leaps(from, msg):
		m.climb(msg.Term)
	case msg.Term > s.Term || s.Role != Follower || m.expects(from):
		m.follow(from, msg)
	}
}

// expects reports whether the node would follow a heartbeat of id in its own term: it follows
// nobody else, and has not voted for somebody else. §7.3
func (m *Machine) expects(id NodeID) bool {
	f := m.state.Follower
	if f.Leader != "" {
		return f.Leader == id
	}
	return f.AwaitedLeader == "" || f.AwaitedLeader == id
}

// onDuplicateLeader steps down because of a second leader in the same term: §7.5. A disk was lost,
// or the other node is not correct. This node stands again only in a higher term. It does not
// answer, or the two would answer each other for ever.
func (m *Machine) onDuplicateLeader(from NodeID, msg *Message) {
	m.report(AnomalyTwoLeaders, from, msg)
	m.learn(from, msg)
	m.stepDown(LeaderPreempted, from, "")
	m.backOff()
}

// follow takes the sender for the leader, promises it the lease and acks: §7.2.
func (m *Machine) follow(from NodeID, msg *Message) {
	s := &m.state
	m.notePresent(from)
	switch s.Role {
	case Candidate:
		m.cede("")
		m.become(Follower, ElectionPreempted, from)
	case Leader:
		m.stepDown(LeaderPreempted, from, "")
	}
	m.enterTerm(msg.Term)
	if t := &s.Takeover; t.To == from { // nobody's names nobody
		t.To, t.Failed = "", 0 // §9.12: the target leads
	}
	s.Turns.reset(from, msg.Successor, false)
	f := s.Follower
	news, why := f.Leader != from, LeaderFound
	if !news && f.LeaderTerm < msg.Term {
		news, why = true, Reaffirmed
	}
	carried := f.Carried && !news
	s.Seek = &nobody.Follower.seekState
	*f = followerState{} // a literal with the fields would be built elsewhere and copied
	f.Leader, f.LeaderTerm, f.HeardAt = from, msg.Term, s.Now
	f.Period, f.Carried = msg.Period, carried
	if !carried {
		f.SilentAt = m.silentAt(from, msg)
	}
	if msg.LSN.Compare(s.SeenLSN) > 0 {
		s.SeenLSN = msg.LSN
	}
	if news {
		m.transition(Follower, why, from)
	}
	m.heardRecord(from, msg)
	m.followed = true
	if m.set.mayVote && !m.mayHaveMoved(msg.Term) {
		m.promiseTo(from, msg.Term)
		ack := m.ackOf(msg.Sequence, msg.SentAt)
		m.sendAck(&ack)
	}
}

// leaderSilent gives up a leader, or a candidate that this node voted for, whose
// heartbeats stay away: §7.6.
func (m *Machine) leaderSilent() {
	if m.state.Follower.Leader != "" {
		m.watch.suspected()
		m.loseLeader(LeaderNoHeartbeat, "")
	}
	m.forgetLeader()
	m.backOff()
}

// loseLeader makes the node leaderless. The promise stays (§6.7): losing sight of a
// leader does not end its lease.
func (m *Machine) loseLeader(why Reason, peer NodeID) {
	m.forgetLeader()
	m.transition(Follower, why, peer)
}

// heldUp postpones every deadline that is due because nothing was heard: §7.12. It does not
// postpone the end of a leader's lease.
func (m *Machine) heldUp(late time.Duration) {
	s := &m.state
	until := s.Now.Add(min(late, m.cfg.Timing.HeartbeatBroadcast))
	for _, d := range [...]*Time{ // deadlines of other roles are zero
		&s.Follower.SilentAt, &s.Seek.RoundEnd, &s.Seek.StandAt, &s.Candidate.End,
	} {
		if due(*d, s.Now) {
			*d, s.HeldUntil = until, until
		}
	}
}

func (m *Machine) forgetLeader() {
	f := m.state.Follower
	f.Leader, f.LeaderTerm, f.HeardAt, f.Carried = "", lsn.Term(0), 0, false
	f.AwaitedLeader, f.SilentAt, f.SayAt = "", 0, 0
}

// linkUp tells the other end of a new link what it has missed (§7.8): a heartbeat, the
// open round, the open proposal.
func (m *Machine) linkUp(peer NodeID) {
	s := &m.state
	voter, isVoter := m.voter(peer)
	m.notePresent(peer)
	m.uncarry(peer) // the session has ended
	if s.Role == Leader {
		s.Leader.Covered = false
	}
	if isVoter && s.Role != Dormant {
		m.tellFloor(peer)
	}
	switch {
	case s.Role == Leader:
		m.heartbeat(peer, 0)
		if isVoter && s.Leader.Reaffirm.Sent {
			m.propose(voter)
		}
	case s.Role == Candidate && isVoter:
		if b := &s.Candidate.Ballot; b.Sent && !(b.Yes | b.No).Has(voter) {
			m.propose(voter)
		}
	case s.Role == Follower && s.Seek.Round.IsOpen():
		if isVoter && !s.Seek.Round.Answered(voter) || !isVoter && m.hasRecord() {
			m.scout(peer)
		}
	case s.Role == Follower && !m.set.mayVote && s.Follower.Leader == "" &&
		(m.hasRecord() || len(m.set.voters) == 0): // §15.5
		m.request(peer)
	}
}

// notePresent notes that a voter takes part. It may have said before, on a link that stayed up,
// that it stops.
func (m *Machine) notePresent(id NodeID) {
	if voter, ok := m.voter(id); ok {
		m.state.Linked = m.state.Linked.With(voter)
	}
}

// linkDown is a hint that the peer is gone. The node stops following it, but no promise ends
// (§6.7). The hint may decide an open round or proposal.
func (m *Machine) linkDown(peer NodeID) {
	s := &m.state
	if voter, ok := m.voter(peer); ok {
		s.Linked = s.Linked.Without(voter)
		if s.Role == Leader {
			s.By[voter].FitSince, s.Leader.Settled = 0, s.Leader.Settled.Without(voter)
		}
	}
	m.unavailable(peer)
	switch {
	case s.Role == Follower && s.Seek.Round.IsOpen():
		m.decideRound()
	case s.Role == Candidate && m.ballot().Sent:
		m.decideBallot()
	}
}

// unavailable gives up the leader peer at once, and looks for another: §7.7.
func (m *Machine) unavailable(peer NodeID) {
	if m.state.Role == Follower && m.state.Follower.Leader == peer {
		m.loseLeader(LeaderUnavailable, peer)
		m.backOff()
	}
}

// onNodeUnavailable acts on a node's word that it stops taking part. It answers nobody any more,
// although its link may stay up for other elections. The word comes too late if the node has
// started again since and leads in a higher term.
func (m *Machine) onNodeUnavailable(from NodeID, msg *Message) {
	if f := m.state.Follower; f.Leader != from || msg.Term >= f.LeaderTerm {
		m.linkDown(from)
	}
}

// died ends every promise to a process that is proven dead.
func (m *Machine) died(peer NodeID) {
	s := &m.state
	if s.Promise.To == peer { // §6.5, §6.6
		s.Promise = promise{}
	}
	if m.held != nil {
		*m.held = slices.DeleteFunc(*m.held, func(e Envelope) bool { return e.To == peer })
	}
	m.unavailable(peer)
	if s.Role == Follower && s.Turns.LastLeader == peer {
		s.seek().LeaderDied = true
	}
	if s.Follower.AwaitedLeader == peer || s.Seek.Ahead == peer {
		m.forgetLeader()
		m.backOff()
	}
	m.retryStand()
	m.answerAgain()
}
