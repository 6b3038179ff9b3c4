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
		Leader:      m.Leader(),
		PromisedTo:  p.To,
		PromiseLeft: p.Until.Sub(s.Now),
		EmbargoLeft: max(s.EmbargoEnd.Sub(s.Now), 0),
		Record:      s.Record.Accepted.LSN,
		// §4.5: a node that cannot win its round must not refuse one that can.
		Scouting: s.Role == Follower && s.Seek.Round.IsOpen() && m.reach() >= m.set.quorum,
	}
}

// reach is the number of voters that this one has links to, itself included.
func (m *Machine) reach() int { return m.state.Linked.With(m.set.self).Count() }

// promise is the outstanding promise; the zero promise if there is none.
func (m *Machine) promise() promise {
	if m.state.Promise.Until <= m.state.Now {
		return promise{}
	}
	return m.state.Promise
}

// promiseTo binds this node to id from now on, as the backing of its lease: §6.1.
func (m *Machine) promiseTo(id NodeID, term lsn.Term) {
	if !m.cfg.UnsafeNoScouting {
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
	if !m.answers(msg) {
		return
	}
	m.notePresent(from)
	q := asked(from, msg)
	a := m.weigh(q)
	m.answer(q, a)
	if !a.WillVote && (a.Cause == scouting.CauseLeader || a.Cause == scouting.CausePromise) {
		refused := q
		m.state.Refused = &refused
	}
}

// weigh decides on a scouting question by the rule.
func (m *Machine) weigh(q question) scouting.Answer {
	asker := scouting.Rank{Priority: q.Priority, Node: q.From}
	return m.cfg.Rule.Answer(m.stance(), asker, q.Term, q.Record)
}

func (m *Machine) answer(q question, a scouting.Answer) {
	reply := m.reply(ElectionScoutingResponse, a, q.Term)
	reply.Round, reply.Priority = q.Round, q.Priority
	m.compareRecords(&reply, q.Record)
	m.send(q.From, &reply)
}

// reply returns what both responses have in common: §4.10. From a no the asker learns which term it
// must exceed.
func (m *Machine) reply(kind Kind, a scouting.Answer, proposed lsn.Term) Message {
	reply := Message{
		Kind: kind, Term: m.floor(), ProposedTerm: proposed,
		WillVote: a.WillVote, Cause: a.Cause, RetryAfter: a.RetryAfter,
	}
	if leader := m.Leader(); !a.WillVote && leader != "" {
		reply.Leader, reply.LeaderTerm = leader, m.leadershipTerm()
	}
	return reply
}

// answers reports whether this node answers a question: §15.4. With a record every member does,
// whatever its own record says about itself: it may be older than that of the asker.
func (m *Machine) answers(msg *Message) bool {
	return m.set.mayVote || m.hasRecord() || msg.Record != (lsn.LSN{})
}

// newest is the LSN of the accepted record, as questions carry it.
func (m *Machine) newest() lsn.LSN { return m.state.Record.Accepted.LSN }

// compareRecords puts into the answer to a question the LSN that decided: the asker's with a yes,
// this node's with a no if that is newer.
func (m *Machine) compareRecords(reply *Message, askers lsn.LSN) {
	own := m.state.Record.Accepted.LSN
	if reply.WillVote {
		reply.Record = askers
	} else if askers.Less(own) {
		reply.Record = own
	}
}

// onElectionProposal votes or refuses. It does not answer a proposal that would get its vote but
// whose term leaps: the node climbs first, and the proposal is repeated.
func (m *Machine) onElectionProposal(from NodeID, msg *Message) {
	if !m.answers(msg) {
		return
	}
	m.notePresent(from)
	a := m.wouldVote(from, msg.Term, msg.Record)
	if a.WillVote && m.leaps(from, msg) {
		m.climb(msg.Term)
		return
	}
	if a.WillVote {
		m.vote(from, msg.Term)
	}
	reply := m.reply(ElectionProposalResponse, a, msg.Term)
	reply.SentAt = msg.SentAt
	m.compareRecords(&reply, msg.Record)
	m.send(from, &reply)
}

// wouldVote decides on a proposal by the rule of scouting, without rank: §4.6.
func (m *Machine) wouldVote(from NodeID, term lsn.Term, record lsn.LSN) scouting.Answer {
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
	return scouting.RuleDefault.Answer(s, scouting.Rank{Node: from}, term, record)
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
	f := s.Follower
	f.AwaitedLeader = id
	m.disarm()
	// §4.9: a candidate that fails must not leave its voters idle. The proposal of a leader that
	// re-affirms itself is as good a sign of life as a heartbeat.
	wait := m.cfg.Timing.ElectionResult
	if f.Leader == id {
		wait = m.cfg.Timing.Inactivity()
	}
	if !f.Carried {
		f.SilentAt = s.Now.Add(wait)
	}
}
