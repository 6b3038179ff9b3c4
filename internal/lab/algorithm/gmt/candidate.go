package gmt

import (
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/lsn"
)

// onLead follows who leads. A LEADER does so unless the LEAD is obsolete.
func (m *machine) onLead(from algorithm.NodeID, at lsn.LSN) {
	if m.leads && at.Less(m.last) {
		return
	}
	if m.leads {
		m.Why = "a LEAD that is not obsolete"
	} else {
		m.Why = "LEAD"
	}
	m.leads = false
	m.leader, m.term = from, at.Term
	m.heard(from, at)
}

// heard notes a LEAD, this member's own ones too: the ELECTOR waits anew, and the tally board
// is clear.
func (m *machine) heard(from algorithm.NodeID, at lsn.LSN) {
	m.old = from
	if m.seen.Less(at) {
		m.seen = at
	}
	if !m.voting {
		m.timer = m.Now.Add(3 * m.hbt)
	}
	clear(m.tally)
}

// onVote records a vote. A FOLLOWER with more than N/2 identical ones is LEADER.
func (m *machine) onVote(from int, claim lsn.LSN) {
	if m.leads {
		return
	}
	m.tally[from] = &claim
	identical := 0
	for _, vote := range m.tally {
		if vote != nil && *vote == claim {
			identical++
		}
	}
	if 2*identical <= len(m.tally) {
		return
	}
	m.leads, m.term, m.Why = true, claim.Term+1, "more than N/2 identical votes"
	m.last = lsn.LSN{Term: m.term}
	m.lead()
}

// lead broadcasts a LEAD.
func (m *machine) lead() {
	m.nextLead = m.Now.Add(m.hbt)
	m.last.Counter++
	m.heard(m.Cfg.Self(), m.last)
	m.Broadcast(Lead{At: m.last})
}
