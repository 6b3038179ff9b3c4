package elector

import (
	"time"

	"github.com/bmqelect/bmqelect/lsn"
)

// becomeCandidate raises the term. The proposal, which is also a vote for
// oneself, waits for the term to be durable.
func (m *Machine) becomeCandidate(term lsn.Term) {
	m.enterTerm(term)
	m.become(Candidate, Proposed, "")
	m.state.Candidate.Ballot.Term = term
	m.state.Candidate.Began = m.state.Now
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
	if s.Role == Candidate {
		s.Candidate.End = s.Now.Add(m.patienceOfCandidate())
	}
	m.proposeToAll()
	m.settleBallot()
}

// patienceOfCandidate is how long a proposal is open. The voters have to write the
// term before they answer, and their disks may be as slow as this one's was.
func (m *Machine) patienceOfCandidate() time.Duration {
	limit := m.cfg.Timing.ElectionResult
	wrote := m.state.Now.Sub(m.state.Candidate.Began)
	return limit + min(wrote, slowestDisk*limit)
}

// slowestDisk bounds, in election-result times, the allowance for slow disks: a
// candidate that hears nothing must not bind its voters for longer.
const slowestDisk = 10

// proposeToAll asks the voters, and a candidate those that said yes, too, once a
// heartbeat period: a vote that is repeated backs a fresh lease, however long the
// first one took to write, and a proposal or an answer may have been lost.
func (m *Machine) proposeToAll() {
	if m.state.Role == Candidate && !m.cfg.UnsafeNoScouting {
		m.state.Candidate.ProposeAt = m.state.Now.Add(m.cfg.Timing.HeartbeatBroadcast)
	}
	for i := range m.cfg.voters {
		if !m.ballot().No.Has(i) {
			m.propose(i)
		}
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
		m.onRefusal(from, voter, msg)
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
func (m *Machine) onRefusal(from NodeID, voter int, msg *Message) {
	m.learn(from, msg)
	if m.state.Role == Leader {
		m.challenge(from, msg)
		return
	}
	if b := m.ballot(); b.Sent && b.Term == msg.ProposedTerm {
		b.Yes, b.No = b.Yes.Without(voter), b.No.With(voter) // it may have moved on since its yes
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
// again after a re-affirmation. It begins only with a lease that outlasts the next
// heartbeat period. If the votes took longer than that leaves, because of a slow disk or since the
// candidate slept, the proposal is repeated and the next answers count: they come
// at least once a period, and so do the acks that renew the lease afterwards.
func (m *Machine) win(b Ballot) {
	switch {
	case m.state.Role == Leader:
		m.reaffirmed(b)
	case m.leaseFrom(&b.Support) >= m.state.Now.Add(m.cfg.Timing.HeartbeatBroadcast):
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
