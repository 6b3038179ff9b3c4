package elector

import "github.com/bmqelect/bmqelect/lsn"

// becomeCandidate raises the term. The proposal, which is also a vote for
// oneself, waits for the term to be durable.
func (m *Machine) becomeCandidate(term lsn.Term) {
	m.enterTerm(term)
	m.become(Candidate, Proposed, "")
	m.state.Candidate.Ballot.Term = term
	m.state.Candidate.End = m.state.Now.Add(m.cfg.Timing.ElectionResult)
}

// ballot is the proposal that this node has made or is about to make; its Term
// is 0 if there is none.
func (m *Machine) ballot() *Ballot {
	if m.state.Role == Leader {
		return &m.state.Leader.Reaffirm
	}
	return &m.state.Candidate.Ballot
}

// proposeIfDurable votes for this node and proposes it to all voters, once the
// term of its ballot is on disk.
func (m *Machine) proposeIfDurable() {
	s, b := &m.state, m.ballot()
	if b.Term == 0 || b.Sent || b.Term > s.Durable {
		return
	}
	b.Sent, b.SentAt = true, s.Now
	s.Vote = m.cfg.Self
	b.Yes = b.Yes.With(m.cfg.self)
	m.proposeToAll()
	m.settleBallot()
}

func (m *Machine) proposeToAll() {
	for i := range m.cfg.voters {
		m.propose(i)
	}
}

// propose asks one voter other than this node for its vote.
func (m *Machine) propose(voter int) {
	if voter == m.cfg.self {
		return
	}
	m.send(m.cfg.voters[voter], Message{
		Kind: ElectionProposal, Term: m.ballot().Term, SentAt: m.state.Now,
	})
}

// onElectionProposalResponse counts a vote, for exactly the term that asked and
// once per voter.
func (m *Machine) onElectionProposalResponse(from NodeID, msg *Message) {
	voter, _ := m.voter(from)
	if !msg.WillVote {
		m.onRefusal(voter, msg)
		return
	}
	if msg.Term != msg.ProposedTerm {
		return // a vote raises the voter's term to the proposed one
	}
	if !m.countVote(voter, msg) {
		m.refuse(AnomalyMalformed, from, msg)
	}
}

// countVote reports false for a vote that echoes what was never sent. A vote for
// an old ballot counts for nothing, but one that comes after the quorum still
// supports the lease, and so does a vote to re-affirm.
func (m *Machine) countVote(voter int, msg *Message) bool {
	s, b := &m.state, m.ballot()
	open := b.Sent && b.Term == msg.ProposedTerm
	ok := true
	switch {
	case s.Role == Leader && (open || s.Leader.Term == msg.ProposedTerm):
		ok = m.supported(voter, msg.SentAt)
	case open:
		ok = b.Support.ack(voter, msg.SentAt, b.SentAt, s.Now)
	}
	if ok && open {
		b.Yes = b.Yes.With(voter)
		m.settleBallot()
	}
	return ok
}

// onRefusal learns the refuser's term. A leader with a lower one re-affirms
// itself; it does not cede to a term that nobody leads in.
func (m *Machine) onRefusal(voter int, msg *Message) {
	m.learn(msg.Term)
	if m.state.Role == Leader {
		m.challenge(msg.Term)
		return
	}
	if b := m.ballot(); b.Sent && b.Term == msg.ProposedTerm {
		b.No = b.No.With(voter)
		m.settleBallot()
	}
}

// settleBallot acts on the open ballot as soon as it is decided. A re-affirmation
// is never lost by noes: the lease decides.
func (m *Machine) settleBallot() {
	b := m.ballot()
	switch {
	case b.Yes.Count() >= m.cfg.quorum:
		m.win(*b)
	case m.state.Role == Candidate && (len(m.cfg.voters)-b.No.Count() < m.cfg.quorum || m.hopeless(b.Yes, b.No)):
		m.electionFailed()
	}
}

// win makes this node the leader of the ballot's term: for the first time, or
// again after a re-affirmation. Votes that complete a quorum only after the lease
// that they back has ended elect nobody: the candidate slept, or an election may
// take longer than a lease here.
func (m *Machine) win(b Ballot) {
	switch {
	case m.state.Role == Leader:
		m.reaffirmed(b)
	case m.leaseFrom(&b.Support) <= m.state.Now:
		m.electionFailed()
	default:
		m.becomeLeader(b)
	}
}

// electionFailed returns to FOLLOWER and releases the promises that the
// proposal got.
func (m *Machine) electionFailed() {
	m.cede("")
	m.become(Follower, QuorumNotAchieved, "")
	m.backOff()
}
