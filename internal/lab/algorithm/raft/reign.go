package raft

import (
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
)

// reign is what a leader knows.
type reign struct {
	beat   algorithm.Time   // when the next AppendEntries is due
	active []bool           // by rank: who answered in this interval of E
	equal  []bool           // by rank: whose log has the leader's entry
	target algorithm.NodeID // of the transfer that is on; "" if none is
}

// becomeLeader appends the entry of the new term.
func (m *machine) becomeLeader() {
	m.becomeFollower(m.disk.Term, m.cfg.Self(), "votes of a quorum")
	n := len(m.cfg.Order)
	m.role, m.reign = leader, reign{active: make([]bool, n), equal: make([]bool, n)}
	m.disk.Log = m.disk.Term
	m.replicate()
}

func (m *machine) replicate() {
	m.reign.beat = m.now.Add(m.cfg.Elector.Timing.HeartbeatBroadcast)
	m.send(elector.AllMembers, Message{Kind: AppendEntries, Term: m.disk.Term})
}

// lead does what is due: after each E it sees who answered, and ends a transfer that has not
// succeeded; after each period it sends heartbeats.
func (m *machine) lead() {
	if m.now >= m.since.Add(m.base()) {
		active := 1 // itself
		for _, is := range m.reign.active {
			if is {
				active++
			}
		}
		if m.rules.checkQuorum && active < m.cfg.Elector.QuorumSize() {
			m.becomeFollower(m.disk.Term, "", "CheckQuorum")
			return
		}
		clear(m.reign.active)
		m.since, m.reign.target = m.now, ""
	}
	if m.now >= m.reign.beat {
		m.replicate()
	}
}

// acknowledge notes that a voter follows, and has the log.
func (m *machine) acknowledge(from algorithm.NodeID) {
	rank := m.cfg.Rank(from)
	if rank < 0 {
		return
	}
	m.reign.active[rank] = true
	if !m.reign.equal[rank] && from == m.reign.target {
		m.send(from, Message{Kind: TimeoutNow, Term: m.disk.Term})
	}
	m.reign.equal[rank] = true
}

// transfer hands over to a voter, to the first that has the log if none is named; to itself it
// ends a transfer. It has E to succeed.
func (m *machine) transfer(to algorithm.NodeID) {
	for rank, peer := range m.cfg.Order {
		if to == "" && m.reign.equal[rank] {
			to = peer
		}
	}
	rank := m.cfg.Rank(to)
	if rank < 0 || to == m.reign.target {
		return
	}
	m.reign.target = ""
	if to == m.cfg.Self() {
		return
	}
	m.reign.target, m.since = to, m.now
	if m.reign.equal[rank] {
		m.send(to, Message{Kind: TimeoutNow, Term: m.disk.Term})
		return
	}
	m.send(to, Message{Kind: AppendEntries, Term: m.disk.Term})
}
