package gmt

import (
	"github.com/bmqelect/bmqelect/lsn"
)

// onElect records a claim, and joins the round that it belongs to.
func (m *machine) onElect(from int, seen lsn.LSN) {
	m.slate[from] = &seen
	if !m.voting {
		m.vote()
	}
}

// timeOut ends what the ELECTOR waited for: a LEAD, or claims.
func (m *machine) timeOut() {
	if m.voting {
		m.choose()
		return
	}
	m.leader, m.Why = "", "no LEAD"
	m.vote()
}

// vote enters the state VOTING.
func (m *machine) vote() {
	m.voting, m.timer = true, m.Now.Add(m.rtt)
	claim := m.seen
	m.slate[m.Self] = &claim
	m.Broadcast(Elect{Seen: claim})
}

// choose votes for the best claim, and enters the state WATCHING.
func (m *machine) choose() {
	best := m.best()
	claim := *m.slate[best]
	clear(m.slate)
	m.voting, m.timer = false, m.Now.Add(3*m.hbt)
	if best == m.Self {
		m.onVote(m.Self, claim)
		return
	}
	m.Send(best, Vote{Claim: claim})
}

// best is who has the best claim: the old leader if it is among the claimants, otherwise the
// largest claim, and of equal ones the first in the configuration.
func (m *machine) best() int {
	if old := m.Cfg.Rank(m.old); old >= 0 && m.slate[old] != nil {
		return old
	}
	best := m.Self
	for i, claim := range m.slate {
		if claim == nil {
			continue
		}
		if c := claim.Compare(*m.slate[best]); c > 0 || c == 0 && i < best {
			best = i
		}
	}
	return best
}
