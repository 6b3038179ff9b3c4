package raft

import (
	"slices"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
)

// reign is what a leader knows.
type reign struct {
	beat   algorithm.Time   // when the next AppendEntries is due
	active []bool           // by rank: who answered in this interval of E
	match  []Position       // by rank: how far the logs are known to be equal
	target algorithm.NodeID // of the transfer that is on; "" if none is
}

func (m *machine) becomeLeader() {
	m.becomeFollower(m.disk.Term, m.cfg.Self(), "votes of a quorum")
	n := len(m.cfg.Order)
	m.role, m.reign = leader, reign{active: make([]bool, n), match: make([]Position, n)}
	m.append()
}

// append appends an entry and hands it out. During a transfer there are no new entries: the
// target would never have them all.
func (m *machine) append() {
	if m.reign.target == "" {
		m.disk.Log = Position{Term: m.disk.Term, Index: m.disk.Log.Index + 1}
	}
	m.reign.beat = m.now.Add(m.cfg.Elector.Timing.HeartbeatBroadcast)
	m.handOut(elector.AllMembers)
}

func (m *machine) handOut(to algorithm.NodeID) {
	m.send(to, Message{Kind: AppendEntries, Term: m.disk.Term, Log: m.disk.Log})
}

// lead does what is due: after each E it sees who answered, and ends a transfer that has not
// succeeded; after each period it appends.
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
		m.append()
	}
}

// acknowledge notes that a member follows, and how far it has the log.
func (m *machine) acknowledge(from algorithm.NodeID, match Position) {
	rank := m.cfg.Rank(from)
	if rank < 0 {
		return
	}
	m.reign.active[rank] = true
	if match.compare(m.reign.match[rank]) <= 0 {
		return
	}
	m.reign.match[rank] = match
	if from == m.reign.target && match == m.disk.Log {
		m.send(from, Message{Kind: TimeoutNow, Term: m.disk.Term})
	}
}

// transfer hands over to a voter, to one with the newest log if none is named; to itself it ends
// a transfer. It has E to succeed.
func (m *machine) transfer(to algorithm.NodeID) {
	match := func(id algorithm.NodeID) Position { return m.reign.match[m.cfg.Rank(id)] }
	if to == "" && len(m.peers) > 0 {
		to = slices.MaxFunc(m.peers, func(a, b algorithm.NodeID) int {
			return match(a).compare(match(b))
		})
	}
	if m.cfg.Rank(to) < 0 || to == m.reign.target {
		return
	}
	m.reign.target = ""
	if to == m.cfg.Self() {
		return
	}
	m.reign.target, m.since = to, m.now
	if match(to) == m.disk.Log {
		m.send(to, Message{Kind: TimeoutNow, Term: m.disk.Term})
		return
	}
	m.handOut(to)
}
