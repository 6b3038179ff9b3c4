package gmt

import (
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/member"
	"github.com/bmqelect/bmqelect/lsn"
)

// machine is a member with its two machines: the ELECTOR, WATCHING or VOTING, and the CANDIDATE,
// which is LEADER or FOLLOWER as Member.Role is.
type machine struct {
	*member.Member
	seen lsn.LSN // of the newest LEAD, the own ones included
	old  int     // the sender of the last LEAD; Member.Leader until the ELECTOR's timer ends

	voting bool
	timer  member.Timer // of the ELECTOR
	slate  []*lsn.LSN   // claims by rank; nil for none

	last     lsn.LSN      // of a LEADER: of its newest LEAD
	nextLead member.Timer // of a LEADER
	tally    []*lsn.LSN   // the newest vote by rank; nil for none
}

func newMachine(m *member.Member) member.Rules {
	n := len(m.Cfg.Order)
	return &machine{Member: m, old: member.Nobody, timer: m.After(5 * m.Timing.HeartbeatBroadcast),
		slate: make([]*lsn.LSN, n), tally: make([]*lsn.LSN, n)}
}

// Tick implements member.Rules.
func (m *machine) Tick() algorithm.Time {
	if m.Due(&m.timer) {
		switch {
		case m.voting:
			m.choose()
		case m.Role == elector.Leader: // it was paused
			m.vote()
		default:
			m.Leader, m.Why = member.Nobody, "no LEAD"
			m.vote()
		}
	}
	if m.Due(&m.nextLead) {
		m.lead()
	}
	return member.Earliest(m.timer, m.nextLead)
}

// Receive implements member.Rules. An ELECT makes the ELECTOR join its round.
func (m *machine) Receive(from int, msg algorithm.Message) {
	switch msg := msg.(type) {
	case Lead:
		m.onLead(from, msg.At)
	case Elect:
		m.slate[from] = &msg.Seen
		if !m.voting {
			m.vote()
		}
	case Vote:
		m.onVote(from, msg.Claim)
	}
}

// vote enters the state VOTING.
func (m *machine) vote() {
	m.voting, m.timer = true, m.After(m.Timing.ElectionResult)
	claim := m.seen
	m.slate[m.Self] = &claim
	m.Broadcast(Elect{Seen: claim})
}

// watch waits for a LEAD.
func (m *machine) watch() { m.timer = m.After(3 * m.Timing.HeartbeatBroadcast) }

// choose votes for the best claim, and enters the state WATCHING.
func (m *machine) choose() {
	best := m.best()
	claim := *m.slate[best]
	clear(m.slate)
	m.voting = false
	m.watch()
	if best == m.Self {
		m.onVote(m.Self, claim)
		return
	}
	m.Send(best, Vote{Claim: claim})
}

// best is who has the best claim: the old leader if it is among the claimants, otherwise the
// largest claim, and of equal ones the first in the configuration.
func (m *machine) best() int {
	if m.old != member.Nobody && m.slate[m.old] != nil {
		return m.old
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

// onLead follows who leads. A LEADER does so unless the LEAD is obsolete.
func (m *machine) onLead(from int, at lsn.LSN) {
	why := "LEAD"
	if m.Role == elector.Leader {
		if at.Less(m.last) {
			return
		}
		why = "a LEAD that is not obsolete"
	}
	m.Become(elector.Follower, from, why)
	m.Term, m.nextLead = at.Term, member.Timer{}
	m.heard(from, at)
}

// heard notes a LEAD, this member's own ones too: the ELECTOR waits anew, and the tally board
// is clear.
func (m *machine) heard(from int, at lsn.LSN) {
	m.old = from
	if m.seen.Less(at) {
		m.seen = at
	}
	if !m.voting {
		m.watch()
	}
	clear(m.tally)
}

// onVote records a vote. A FOLLOWER with more than N/2 identical ones is LEADER.
func (m *machine) onVote(from int, claim lsn.LSN) {
	if m.Role == elector.Leader {
		return
	}
	m.tally[from] = &claim
	identical := 0
	for _, vote := range m.tally {
		if vote != nil && *vote == claim {
			identical++
		}
	}
	if 2*identical > len(m.tally) {
		m.Term = claim.Term + 1
		m.last = lsn.LSN{Term: m.Term}
		m.Become(elector.Leader, m.Self, "more than N/2 identical votes")
		m.lead()
	}
}

// lead broadcasts a LEAD.
func (m *machine) lead() {
	m.nextLead = m.After(m.Timing.HeartbeatBroadcast)
	m.last.Counter++
	m.heard(m.Self, m.last)
	m.Broadcast(Lead{At: m.last})
}
