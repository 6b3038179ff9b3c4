package elector

import "github.com/bmqelect/bmqelect/lsn"

// becomeCandidate raises the term. The proposal, which is also a vote for oneself, waits
// if the term is not reserved on disk: §5.1.
func (m *Machine) becomeCandidate(term lsn.Term) {
	m.enterTerm(term)
	m.become(Candidate, Proposed, "")
	m.state.Candidate.Ballot.Term = term
	m.state.Candidate.Began = m.state.Now
	m.proposeIfDurable()
}

// ballot is the proposal that this node has made or is about to make; its Term
// is 0 if there is none.
func (m *Machine) ballot() *ballot {
	if m.state.Role == Leader {
		return &m.state.Leader.Reaffirm
	}
	return &m.state.Candidate.Ballot
}

// slowestDisk bounds, in election-result times, the allowance for slow disks: a
// candidate that hears nothing must not bind its voters for longer.
const slowestDisk = 10

// proposeIfDurable votes for this node and proposes it to all voters, once the
// term of its ballot is reserved on disk.
func (m *Machine) proposeIfDurable() {
	s, b := &m.state, m.ballot()
	if b.Term == 0 || b.Sent || b.Term > s.Durable {
		return
	}
	b.Sent, b.SentAt = true, s.Now
	s.Vote = m.cfg.Self
	b.Yes = b.Yes.With(m.set.self)
	if s.Role == Candidate {
		// §5.6: the voters write the term before they answer, and their disks may be as
		// slow as this one's was.
		limit := m.cfg.Timing.ElectionResult
		wrote := s.Now.Sub(s.Candidate.Began)
		s.Candidate.End = s.Now.Add(limit + min(wrote, slowestDisk*limit))
	}
	m.proposeToAll()
	m.decideBallot()
}

// proposeToAll asks every voter that has not refused; a candidate does so once a heartbeat period.
// §5.2: a repeated vote backs a fresh lease, however long the first vote took to write. And a
// proposal or an answer may have been lost.
func (m *Machine) proposeToAll() {
	if m.state.Role == Candidate && !m.cfg.UnsafeNoScouting {
		m.state.Candidate.ProposeAt = m.state.Now.Add(m.cfg.Timing.HeartbeatBroadcast)
	}
	for i := range m.set.voters {
		if !m.ballot().No.Has(i) {
			m.propose(i)
		}
	}
}

// propose asks one voter other than this node for its vote.
func (m *Machine) propose(voter int) {
	if voter != m.set.self {
		m.send(m.set.voters[voter], &Message{
			Kind: ElectionProposal, Term: m.ballot().Term, SentAt: m.state.Now, Record: m.newest(),
		})
	}
}

// onElectionProposalResponse counts a vote for exactly the proposed term, once per voter: §5.3. A
// vote that comes after the quorum still supports the lease, and so does a vote that re-affirms.
func (m *Machine) onElectionProposalResponse(from NodeID, identity Identity, msg *Message) {
	s, b := &m.state, m.ballot()
	voter, counts := m.genuine(from, identity)
	if !msg.WillVote {
		m.noteNewer(from, msg)
		m.onRefusal(from, voter, counts, msg)
		return
	}
	if msg.Term != msg.ProposedTerm || !counts {
		return // a vote raises the voter's term to the proposed one
	}
	open := b.Sent && b.Term == msg.ProposedTerm
	ok := true
	switch {
	case s.Role == Leader && (open || s.Leader.Term == msg.ProposedTerm):
		ok = m.supported(voter, msg.SentAt)
	case open:
		ok = m.ack(voter, msg.SentAt, b.SentAt)
	}
	switch {
	case !ok: // it echoes what was never sent
		m.report(AnomalyMalformed, from, msg)
	case open:
		b.Yes, b.No = b.Yes.With(voter), b.No.Without(voter)
		m.decideBallot()
	}
}

// onRefusal learns the refuser's term. A leader with a lower one re-affirms itself; it
// does not cede to a term that nobody leads in.
func (m *Machine) onRefusal(from NodeID, voter int, counts bool, msg *Message) {
	m.learn(from, msg)
	if m.state.Role == Leader {
		if counts {
			m.state.Leader.Settled = m.state.Leader.Settled.Without(voter)
		}
		m.reaffirmAbove(from, msg)
		return
	}
	if b := m.ballot(); counts && b.Sent && b.Term == msg.ProposedTerm {
		b.Yes, b.No = b.Yes.Without(voter), b.No.With(voter) // it may have moved on since its yes
		m.decideBallot()
	}
}

// decideBallot acts on the open ballot as soon as it is decided. Noes do not end a
// re-affirmation: the lease decides.
func (m *Machine) decideBallot() {
	b := m.ballot()
	switch {
	case b.Yes.Count() < m.set.quorum:
		if m.state.Role == Candidate && m.outOfReach(b.Yes, b.No) {
			m.electionFailed()
		}
	case m.state.Role == Leader:
		m.reaffirmed(b.Term)
	// §5.4: the lease must last until the first acks renew it, a period later. If the votes took
	// too long for that, the proposal is repeated, and the next answers count.
	case m.lease() >= m.state.Now.Add(m.cfg.Timing.HeartbeatBroadcast):
		m.becomeLeader(*b)
	}
}

// electionFailed returns to FOLLOWER and releases the promises that the
// proposal got: §5.7.
func (m *Machine) electionFailed() {
	m.cede("")
	m.become(Follower, QuorumNotAchieved, "")
	m.state.Turns.failed()
	m.backOff()
	m.fetch()
}
