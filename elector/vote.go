package elector

import (
	"github.com/bmqelect/bmqelect/lsn"
	"github.com/bmqelect/bmqelect/scouting"
)

// stance is what this node weighs when it is asked for support.
func (m *Machine) stance() scouting.Stance {
	s := &m.state
	p := m.promise()
	return scouting.Stance{
		Self:        scouting.Rank{Priority: s.Priority, Node: m.cfg.Self},
		Term:        m.floor(),
		Leader:      m.perceivedLeader(),
		PromisedTo:  p.To,
		PromiseLeft: p.Until.Sub(s.Now),
		EmbargoLeft: max(s.EmbargoEnd.Sub(s.Now), 0),
		// §4.5: a node that cannot win its round must not refuse one that can.
		Scouting: s.Role == Follower && s.Follower.Round.IsOpen() && m.reach() >= m.cfg.quorum,
	}
}

// reach is the number of voters that this one has links to, itself included.
func (m *Machine) reach() int { return m.state.Linked.With(m.cfg.self).Count() }

// promise is the outstanding promise; the zero promise if there is none.
func (m *Machine) promise() promise {
	if m.state.Promise.Until <= m.state.Now {
		return promise{}
	}
	return m.state.Promise
}

// promiseTo binds this node to id from now on, as the backing of its lease: §6.1.
func (m *Machine) promiseTo(id NodeID, term lsn.Term) {
	if m.cfg.mayVote && !m.cfg.UnsafeNoScouting {
		until := m.state.Now.Add(m.cfg.Timing.Promise())
		if p := m.promise(); p.To == id {
			term = max(term, p.Term) // §7.10: the vote for the new term binds on
		}
		m.state.Promise = promise{To: id, Term: term, Until: until}
	}
}

// onElectionScouting answers whether this node would vote. The answer binds nothing and changes no
// term.
func (m *Machine) onElectionScouting(from NodeID, msg *Message) {
	if !m.cfg.mayVote {
		return
	}
	m.notePresent(from)
	q := asked(from, msg)
	a := m.weigh(q)
	m.answer(q, a)
	if !a.WillVote && (a.Cause == scouting.CauseLeader || a.Cause == scouting.CausePromise) {
		m.state.Refused = q
	}
}

// weigh decides on a scouting question by the rule.
func (m *Machine) weigh(q question) scouting.Answer {
	return m.cfg.Rule.Answer(m.stance(), scouting.Rank{Priority: q.Priority, Node: q.From}, q.Term)
}

func (m *Machine) answer(q question, a scouting.Answer) {
	reply := m.reply(ElectionScoutingResponse, a, q.Term)
	reply.Round, reply.Priority = q.Round, q.Priority
	m.send(q.From, reply)
}

// reply returns what both responses have in common: §4.10. From a no the asker learns which term it
// must exceed.
func (m *Machine) reply(kind Kind, a scouting.Answer, proposed lsn.Term) Message {
	reply := Message{
		Kind: kind, Term: m.floor(), ProposedTerm: proposed,
		WillVote: a.WillVote, Cause: a.Cause, RetryAfter: a.RetryAfter,
	}
	if leader := m.perceivedLeader(); !a.WillVote && leader != "" {
		reply.Leader, reply.LeaderTerm = leader, m.leadershipTerm()
	}
	return reply
}

// onElectionProposal votes or refuses. It does not answer a proposal that would get its vote but
// whose term leaps: the node climbs first, and the proposal is repeated.
func (m *Machine) onElectionProposal(from NodeID, msg *Message) {
	if !m.cfg.mayVote {
		return
	}
	m.notePresent(from)
	a := m.wouldVote(from, msg.Term)
	if a.WillVote && m.leaps(from, msg) {
		m.climb(msg.Term)
		return
	}
	if a.WillVote {
		m.vote(from, msg.Term)
	}
	reply := m.reply(ElectionProposalResponse, a, msg.Term)
	reply.SentAt = msg.SentAt
	m.send(from, reply)
}

// wouldVote decides on a proposal by the rule of scouting, without rank: §4.6.
func (m *Machine) wouldVote(from NodeID, term lsn.Term) scouting.Answer {
	if m.cfg.UnsafeNoScouting { // any higher term gets the vote, whoever leads
		if term <= m.floor() {
			return scouting.Answer{Cause: scouting.CauseTerm}
		}
		return scouting.Answer{WillVote: true}
	}
	s := m.stance()
	s.Scouting = false
	if m.votedFor(from, term) {
		s.Term = term - 1 // §4.7: to repeat the answer is no second vote
	}
	return scouting.RuleDefault.Answer(s, scouting.Rank{Node: from}, term)
}

// votedFor reports whether this node voted for id in term, and id has not given up since. The
// answer may have been lost with a link. §4.7
func (m *Machine) votedFor(id NodeID, term lsn.Term) bool {
	return m.state.Term == term && m.state.Vote == id && !m.hasCeded(id, term)
}

// vote gives the vote of term to id and promises it the lease: §4.8. A node that follows id already
// goes on following, because its leader re-affirms itself.
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
		m.loseLeader(LeaderPreempted, id)
	}
	m.closeRound()
	f := &s.Follower
	f.AwaitedLeader = id
	m.disarm()
	// §4.9: a candidate that fails must not leave its voters idle. The proposal of a leader that
	// re-affirms itself is as good a sign of life as a heartbeat.
	wait := m.cfg.Timing.ElectionResult
	if f.Leader == id {
		wait = m.cfg.Timing.Inactivity()
	}
	f.SilentAt = s.Now.Add(wait)
}
