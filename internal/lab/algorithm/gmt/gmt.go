// Package gmt is the leader election of a memo signed gmt, of January 2000: ELECT, VOTE and
// LEAD. Each member runs two machines: the ELECTOR, which takes part in the choice of a
// leader, also while its member leads, and the CANDIDATE, which finds out whether it leads.
//
// The ELECTOR is WATCHING or VOTING. When no LEAD came for 3 HBT (5 HBT after the start), or when
// an ELECT comes, it is VOTING: it broadcasts ELECT, its claim, which is the (term, msg) of the
// newest LEAD that it saw. An RTT later it sends a VOTE to the member with the best claim, its own
// included, and is WATCHING again. The best claim is that of the old leader, if it is alive;
// otherwise the largest; of equal ones that of the member first in the configuration. The CANDIDATE
// keeps the newest vote of each voter until a LEAD comes. With more than N/2 identical ones it is
// LEADER, and broadcasts LEAD every HBT until it hears a LEAD that is not obsolete.
//
// HBT is Timing.HeartbeatBroadcast, RTT is Timing.ElectionResult, and the order of the
// configuration is Config.Order. Where the memo is silent:
//
//   - A VOTE has the (term, msg) of the claim that it is for. The leader that it makes takes
//     the term above.
//   - A LEAD is obsolete if its (term, msg) is below that of the leader's own last one.
//   - The old leader is the sender of the LEAD that came last. A leader's own LEADs are LEADs to
//     its ELECTOR too.
//   - A member names the sender of the last LEAD as the leader until its timer ends, and not
//     as soon as somebody else's ELECT comes.
//
// It departs from the memo in two places. First, WATCHING that follows on VOTING waits for 3 HBT,
// as after a LEAD. The memo has 5 HBT among the actions of WATCHING that it calls initial, which in
// VOTING are those of every entry; so nobody would lead for as long after a lost VOTE. Here they
// are read as those of the start. Second, a LEADER ignores a LEAD that is obsolete with both its
// machines; the memo's ELECTOR resets its timer on any, a LEADER's by its own LEADs anyway.
//
// An old leader that claims is elected again, so an ELECT of one member unseats nobody. As long
// as messages take less than RTT/2 and no member restarts, members agree in the end. One leader
// at a time, or in a term, is not promised: a leader leads until it hears a LEAD, so a partition
// has two; nothing is durable, so a restarted member votes twice in a term, and an old leader
// that restarted leads in a lower term than before, because its claim is (0, 0) and wins. If
// members differ on who the old leader is, as after restarts, they may split the votes for ever:
// of two members, when the leader restarts, each votes for the other. Without PreVote a member
// whose link from the leader is dead makes an election of all every 3 HBT. Where messages take
// longer than RTT/2, an ELECT that comes after the VOTE starts the next round, without end.
package gmt

import (
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/member"
	"github.com/bmqelect/bmqelect/lsn"
)

// GMT is the algorithm of the memo.
var GMT = algorithm.Algorithm{
	Name:   "gmt",
	Title:  "GMT 2000",
	Source: "gmt, A Leader Election Algorithm, memo, 2000",
	New:    member.Maker(newMachine),
	Tuned:  tuned,
	Deviates: "WATCHING after VOTING waits for 3 HBT, not 5; a LEADER's ELECTOR ignores obsolete " +
		"LEADs",
}

// tuned has a generous RTT, and HBT in the memo's proportion of 5 s to 0.25 s.
func tuned(t elector.Timing, l algorithm.Link) elector.Timing {
	t.ElectionResult = 3 * l.Longest()
	t.HeartbeatBroadcast, t.HeartbeatMissCount = 20*t.ElectionResult, 3
	return t
}

// Elect is the sender's claim.
type Elect struct {
	Seen lsn.LSN // term and number of the newest LEAD that the sender saw; zero for none
}

// Vote is for the receiver.
type Vote struct {
	Claim lsn.LSN // the receiver's, that it answers
}

// Lead asserts that the sender leads.
type Lead struct {
	At lsn.LSN // the sender's term, and the number of the message in it, from 1
}

// Name is the memo's name of the message.
func (Elect) Name() string { return "ELECT" }

// Name is the memo's name of the message.
func (Vote) Name() string { return "VOTE" }

// Name is the memo's name of the message.
func (Lead) Name() string { return "LEAD" }

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

// An ELECT makes the ELECTOR join its round.
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

func (m *machine) vote() {
	m.voting, m.timer = true, m.After(m.Timing.ElectionResult)
	claim := m.seen
	m.slate[m.Self] = &claim
	m.Broadcast(Elect{Seen: claim})
}

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

func (m *machine) lead() {
	m.nextLead = m.After(m.Timing.HeartbeatBroadcast)
	m.last.Counter++
	m.heard(m.Self, m.last)
	m.Broadcast(Lead{At: m.last})
}
