package raft

import (
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
)

// leaderState is what a leader knows.
type leaderState struct {
	beat    algorithm.Time   // when the next AppendEntries is due
	active  []bool           // by rank: who answered in this interval of E
	matched []bool           // by rank: whose log has the leader's entry
	target  algorithm.NodeID // of the transfer that is on; "" if none is
}

// becomeLeader appends the entry of the new term.
func (m *machine) becomeLeader() {
	m.becomeFollower(m.disk.Term, m.cfg.Self(), "votes of a quorum")
	n := len(m.cfg.Order)
	m.role, m.leads = elector.Leader, leaderState{active: make([]bool, n), matched: make([]bool, n)}
	m.disk.LastLogTerm = m.disk.Term
	m.replicate()
}

func (m *machine) replicate() {
	m.leads.beat = m.now.Add(m.cfg.Elector.Timing.HeartbeatBroadcast)
	m.send(elector.AllMembers, Message{Kind: AppendEntries, Term: m.disk.Term})
}

// lead does what is due: after each E it sees who answered, and ends a transfer that has not
// succeeded; after each period it sends heartbeats.
func (m *machine) lead() {
	if m.now >= m.since.Add(m.base()) {
		active := 1 // itself
		for _, is := range m.leads.active {
			if is {
				active++
			}
		}
		if m.rules.checkQuorum && active < m.cfg.Elector.QuorumSize() {
			m.becomeFollower(m.disk.Term, "", "CheckQuorum")
			return
		}
		clear(m.leads.active)
		m.since, m.leads.target = m.now, ""
	}
	if m.now >= m.leads.beat {
		m.replicate()
	}
}

// acknowledge notes that a voter follows, and has the log.
func (m *machine) acknowledge(from algorithm.NodeID) {
	rank := m.cfg.Rank(from)
	if rank < 0 {
		return
	}
	m.leads.active[rank] = true
	if !m.leads.matched[rank] && from == m.leads.target {
		m.send(from, Message{Kind: TimeoutNow, Term: m.disk.Term})
	}
	m.leads.matched[rank] = true
}

// transfer hands over to a voter, to the first that has the log if none is named; to itself it
// ends a transfer. It has E to succeed.
func (m *machine) transfer(to algorithm.NodeID) {
	for rank, peer := range m.cfg.Order {
		if to == "" && m.leads.matched[rank] {
			to = peer
		}
	}
	rank := m.cfg.Rank(to)
	if rank < 0 || to == m.leads.target {
		return
	}
	m.leads.target = ""
	if to == m.cfg.Self() {
		return
	}
	m.leads.target, m.since = to, m.now
	if m.leads.matched[rank] {
		m.send(to, Message{Kind: TimeoutNow, Term: m.disk.Term})
		return
	}
	m.send(to, Message{Kind: AppendEntries, Term: m.disk.Term})
}
