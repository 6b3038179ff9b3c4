package raft

import (
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
)

// answer is a voter's to a candidate or pre-candidate.
type answer uint8

const (
	none answer = iota
	granted
	rejected
)

// preCampaign asks whether the node would win. The timeout begins anew, but is not drawn
// anew: the node has not changed its term.
func (m *machine) preCampaign() {
	m.role, m.pre, m.since = elector.Candidate, true, m.now
	m.leader, m.out.Why = "", "election timeout"
	m.ask(Message{Kind: PreVote, Term: m.disk.Term + 1, LastLogTerm: m.disk.LastLogTerm})
	m.count(m.cfg.Self(), true)
}

// becomeCandidate enters the next term and asks for votes. The own one counts once it is
// durable.
func (m *machine) becomeCandidate(why string, transfer bool) {
	m.becomeFollower(m.disk.Term+1, "", why)
	m.role, m.disk.VotedFor = elector.Candidate, m.cfg.Self()
	m.ask(Message{Kind: RequestVote, Term: m.disk.Term, LastLogTerm: m.disk.LastLogTerm,
		Transfer: transfer})
}

func (m *machine) ask(request Message) {
	m.votes = make([]answer, len(m.cfg.Order))
	for _, peer := range m.peers {
		m.send(peer, request)
	}
}

// vote answers a candidate or pre-candidate. A node that knows a leader in this term has no vote
// left, whether it voted or not. The answer to a pre-candidate binds nobody.
func (m *machine) vote(from algorithm.NodeID, request Message) {
	free := m.disk.VotedFor == from || m.disk.VotedFor == "" && m.leader == "" ||
		request.Kind == PreVote && request.Term > m.disk.Term
	response := Message{Kind: request.Kind + 1, Term: m.disk.Term}
	if free && request.LastLogTerm >= m.disk.LastLogTerm {
		response.Term, response.Granted = request.Term, true
		if request.Kind == RequestVote {
			m.disk.VotedFor, m.since = from, m.now
		}
	}
	m.answer(from, response)
}

// count notes a voter's answer, and ends the campaign if that decides it. A candidate's own
// vote must be among those that elect it.
func (m *machine) count(from algorithm.NodeID, grants bool) {
	answers, quorum := m.votes, m.cfg.Elector.QuorumSize()
	rank := m.cfg.Rank(from)
	if rank < 0 || answers[rank] != none {
		return
	}
	answers[rank] = rejected
	if grants {
		answers[rank] = granted
	}
	var of [rejected + 1]int
	for _, a := range answers {
		of[a]++
	}
	switch {
	case len(answers)-of[rejected] < quorum:
		m.becomeFollower(m.disk.Term, "", "votes lost")
	case of[granted] < quorum || answers[m.cfg.Rank(m.cfg.Self())] != granted:
	case m.pre:
		m.becomeCandidate("PreVotes of a quorum", false)
	default:
		m.becomeLeader()
	}
}
