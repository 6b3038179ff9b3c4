package elector

import (
	"time"

	"github.com/bmqelect/bmqelect/lsn"
	"github.com/bmqelect/bmqelect/scouting"
)

// stance is what this node weighs when it is asked for support.
func (m *Machine) stance() scouting.Stance {
	s := &m.state
	p := m.promise()
	return scouting.Stance{
		Self:        m.rank(),
		Term:        s.Term,
		Leader:      m.perceivedLeader(),
		PromisedTo:  p.To,
		PromiseLeft: p.Until.Sub(s.Now),
		EmbargoLeft: max(s.EmbargoEnd.Sub(s.Now), 0),
		Scouting:    s.Role == Follower && s.Follower.Round.IsOpen() && m.couldWin(),
	}
}

// couldWin reports whether links to a quorum are up. A node that cannot win its
// round must not refuse one that can: where only a low-ranked hub reaches a
// quorum, it would be elected late.
func (m *Machine) couldWin() bool { return m.reach() >= m.cfg.quorum }

// reach is the number of voters that this one has links to, itself included.
func (m *Machine) reach() int { return m.state.Linked.With(m.cfg.self).Count() }

// promise is the outstanding promise; the zero Promise if there is none.
func (m *Machine) promise() Promise {
	if m.state.Promise.Until <= m.state.Now {
		return Promise{}
	}
	return m.state.Promise
}

// promiseTo binds this node to id, from now on, as the backing of its lease.
func (m *Machine) promiseTo(id NodeID, term lsn.Term) {
	if m.cfg.mayVote && !m.cfg.UnsafeNoScouting {
		m.state.Promise = Promise{To: id, Term: term, Until: m.state.Now.Add(m.cfg.Timing.Promise())}
	}
}

// onElectionScouting answers whether this node would vote. Its own term, and
// everything else, stays as it is.
func (m *Machine) onElectionScouting(from NodeID, msg *Message) {
	if !m.cfg.mayVote {
		return
	}
	m.present(from)
	a := m.cfg.Rule.Answer(m.stance(), scouting.Question{
		Asker:        scouting.Rank{Priority: msg.Priority, Node: from},
		ProposedTerm: msg.ProposedTerm,
	})
	reply := m.answer(ElectionScoutingResponse, a, msg.ProposedTerm)
	reply.Round = msg.Round
	m.send(from, reply)
}

// answer is what both responses have in common. A no carries the refuser's term
// and, as a hint, the leader that it perceives.
func (m *Machine) answer(kind Kind, a scouting.Answer, proposed lsn.Term) Message {
	reply := Message{
		Kind: kind, Term: m.state.Term, ProposedTerm: proposed,
		WillVote: a.WillVote, Cause: a.Cause, RetryAfter: a.RetryAfter,
	}
	if leader := m.perceivedLeader(); !a.WillVote && leader != "" {
		reply.Leader, reply.LeaderTerm = leader, m.leadershipTerm()
	}
	return reply
}

// onElectionProposal votes or refuses; it answers all but a term that it has yet to
// climb to.
func (m *Machine) onElectionProposal(from NodeID, msg *Message) {
	if !m.cfg.mayVote {
		return
	}
	m.present(from)
	a := m.wouldVote(from, msg.Term)
	if a.WillVote && m.leaps(from, msg) {
		m.climb()
		return // it would say yes to a proposal that comes again
	}
	if a.WillVote {
		m.vote(from, msg.Term)
	}
	reply := m.answer(ElectionProposalResponse, a, msg.Term)
	reply.SentAt = msg.SentAt
	m.send(from, reply)
}

// wouldVote decides on a proposal. The rule is that of scouting, without rank:
// a leader refuses and so does its follower, whatever the term (sticky); so does
// who promised its vote to another or started a moment ago.
func (m *Machine) wouldVote(from NodeID, term lsn.Term) scouting.Answer {
	if m.cfg.UnsafeNoScouting {
		return m.wouldVoteUnextended(term)
	}
	s := m.stance()
	s.Scouting = false
	if m.votedFor(from, term) {
		s.Term = term - 1 // the question was answered; to answer it again is no second vote
	}
	return scouting.RuleDefault.Answer(s, scouting.Question{
		Asker: scouting.Rank{Node: from}, ProposedTerm: term,
	})
}

// votedFor reports whether this node's vote of term went to id, who may have
// missed the answer because the link blinked, and still stands.
func (m *Machine) votedFor(id NodeID, term lsn.Term) bool {
	return m.state.Term == term && m.state.Vote == id && !m.hasCeded(id, term)
}

// vote gives the vote of term to id and promises it the lease. A node that
// follows id already goes on following: its leader re-affirms itself.
func (m *Machine) vote(id NodeID, term lsn.Term) {
	s := &m.state
	m.cede("")
	m.enterTerm(term)
	s.Vote = id
	m.promiseTo(id, term)
	switch {
	case s.Role == Candidate:
		m.become(Follower, ElectionPreempted, id)
	case s.Role == Leader:
		m.become(Follower, LeaderPreempted, id)
	case s.Follower.Leader != "" && s.Follower.Leader != id:
		m.forgetLeader()
		m.transition(Follower, LeaderPreempted, id)
	}
	f := &s.Follower
	m.closeRound()
	f.Tentative = id
	f.StandAt, f.Discovering, f.Postponed = 0, false, false
	f.SilentAt = s.Now.Add(m.patience(id))
}

// patience is how long a heartbeat of id may take after this node's vote. Not
// the whole inactivity interval: a candidate that fails must not idle its
// voters. A leader that re-affirms itself has given a sign of life, no less
// than by a heartbeat.
func (m *Machine) patience(id NodeID) time.Duration {
	if m.state.Follower.Leader == id {
		return m.cfg.Timing.Inactivity()
	}
	return m.cfg.Timing.ElectionResult
}

// wouldVoteUnextended is the article's algorithm before ElectionScouting: any
// higher term gets the vote, whoever leads.
func (m *Machine) wouldVoteUnextended(term lsn.Term) scouting.Answer {
	if term <= m.state.Term {
		return scouting.Answer{Cause: scouting.CauseTerm}
	}
	return scouting.Answer{WillVote: true}
}
