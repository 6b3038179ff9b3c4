package elector

import "github.com/bmqelect/bmqelect/lsn"

// onLeaderHeartbeat follows a leader of this term or a higher one.
func (m *Machine) onLeaderHeartbeat(from NodeID, msg *Message) {
	s := &m.state
	switch {
	case s.Role == Leader && msg.Term == s.Leader.Term:
		m.meetTwin(from, msg)
	case msg.Term < s.Term && m.reaffirms(from, msg.Term):
		m.follow(from, msg)
	case msg.Term < s.Term:
		m.rejectHeartbeat(from)
	case m.hasCeded(from, msg.Term):
		// Sent before the cession, arrived after it.
	case m.leaps(from, msg):
		m.climb()
	case msg.Term > s.Term || s.Role != Follower || m.expects(from):
		m.follow(from, msg)
	}
}

// reaffirms reports whether this node follows leader in an older term and has voted
// for it in its own. The leader goes on under the older one until a quorum has
// written the new one: it needs the acks.
func (m *Machine) reaffirms(leader NodeID, older lsn.Term) bool {
	f := &m.state.Follower
	return m.state.Vote == leader && f.Leader == leader && f.LeaderTerm == older
}

// rejectHeartbeat tells a stale leader this node's term. An observer's binds nobody.
func (m *Machine) rejectHeartbeat(from NodeID) {
	if m.cfg.mayVote {
		m.send(from, Message{Kind: InvalidHeartbeat, Term: m.state.Term})
	}
}

// expects reports whether a heartbeat of the node's own term is welcome from
// id: nobody else is followed, and no vote waits for somebody else's.
func (m *Machine) expects(id NodeID) bool {
	f := &m.state.Follower
	if f.Leader != "" {
		return f.Leader == id
	}
	return f.Tentative == "" || f.Tentative == id
}

// meetTwin meets a second leader of the same term: a disk was lost, or somebody
// else's build runs there. This one steps down and stands again in a higher
// term only; it does not answer, or the two would answer each other for ever.
func (m *Machine) meetTwin(from NodeID, msg *Message) {
	m.refuse(AnomalyTwoLeaders, from, msg)
	m.learn(from, msg)
	m.stepDown(LeaderPreempted, from, "")
	m.backOff()
}

// follow takes the sender for the leader, promises it the lease and acks.
func (m *Machine) follow(from NodeID, msg *Message) {
	s := &m.state
	m.present(from)
	m.preempted(from)
	m.enterTerm(msg.Term)
	m.takeoverSeen(from)
	f := &s.Follower
	news, why := f.Leader != from, LeaderFound
	if !news && f.LeaderTerm < msg.Term {
		news, why = true, Reaffirmed
	}
	*f = FollowerState{
		Leader: from, LeaderTerm: msg.Term, HeardAt: s.Now,
		SilentAt: s.Now.Add(m.cfg.Timing.Inactivity()),
	}
	if msg.LSN.Compare(s.SeenLSN) > 0 {
		s.SeenLSN = msg.LSN
	}
	if news {
		m.transition(Follower, why, from)
	}
	if m.cfg.mayVote {
		m.promiseTo(from, msg.Term)
		m.ack(from, msg)
	}
}

// preempted ends this node's own candidacy or leadership for the sake of
// another leader.
func (m *Machine) preempted(by NodeID) {
	switch m.state.Role {
	case Candidate:
		m.cede("")
		m.become(Follower, ElectionPreempted, by)
	case Leader:
		m.stepDown(LeaderPreempted, by, "")
	}
}

func (m *Machine) ack(leader NodeID, msg *Message) {
	m.send(leader, Message{
		Kind: HeartbeatAck, Term: msg.Term,
		Sequence: msg.Sequence, SentAt: msg.SentAt, LSN: m.state.SeenLSN,
		Priority: m.cfg.Priority, Candidate: m.mayStand(), Reach: uint8(m.reach()),
	})
}

// silentDue gives up a leader, or a candidate that this node voted for, whose
// heartbeats stay away.
func (m *Machine) silentDue() {
	f := &m.state.Follower
	f.SilentAt, f.Tentative = 0, ""
	if f.Leader == "" {
		m.backOff()
		return
	}
	m.loseLeader(LeaderNoHeartbeat, "")
	m.backOff()
}

// loseLeader makes the node leaderless. The promise stays: losing sight of a
// leader does not end its lease.
func (m *Machine) loseLeader(why Reason, peer NodeID) {
	m.forgetLeader()
	m.transition(Follower, why, peer)
}

func (m *Machine) forgetLeader() {
	f := &m.state.Follower
	f.Leader, f.LeaderTerm, f.HeardAt = "", lsn.Term(0), 0
	f.Tentative, f.SilentAt = "", 0
}
