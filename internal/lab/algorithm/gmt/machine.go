package gmt

import (
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/member"
	"github.com/bmqelect/bmqelect/lsn"
)

// machine is a member with its two machines, elector.go and candidate.go.
type machine struct {
	*member.Member
	rtt, hbt time.Duration

	seen   lsn.LSN          // of the newest LEAD, the own ones included
	old    algorithm.NodeID // the sender of the last LEAD
	leader algorithm.NodeID // old, until the ELECTOR's timer ends
	term   lsn.Term         // of leader's last LEAD

	voting bool           // the ELECTOR is VOTING; otherwise WATCHING
	timer  algorithm.Time // of the ELECTOR
	slate  []*lsn.LSN     // claims by rank; nil for none

	leads    bool           // the CANDIDATE is LEADER; otherwise FOLLOWER
	last     lsn.LSN        // of a LEADER: of its newest LEAD
	nextLead algorithm.Time // of a LEADER
	tally    []*lsn.LSN     // the newest vote by rank; nil for none
}

func newMachine(m *member.Member) member.Rules {
	n, timing := len(m.Cfg.Order), m.Cfg.Elector.Timing
	return &machine{
		Member: m, rtt: timing.ElectionResult, hbt: timing.HeartbeatBroadcast,
		timer: m.Now.Add(5 * timing.HeartbeatBroadcast),
		slate: make([]*lsn.LSN, n), tally: make([]*lsn.LSN, n),
	}
}

// Tick implements member.Rules.
func (m *machine) Tick() algorithm.Time {
	if m.Now >= m.timer {
		m.timeOut()
	}
	if m.leads && m.Now >= m.nextLead {
		m.lead()
	}
	if m.leads {
		return min(m.timer, m.nextLead)
	}
	return m.timer
}

// Receive implements member.Rules.
func (m *machine) Receive(from int, msg algorithm.Message) {
	switch msg := msg.(type) {
	case Lead:
		m.onLead(m.Name(from), msg.At)
	case Elect:
		m.onElect(from, msg.Seen)
	case Vote:
		m.onVote(from, msg.Claim)
	}
}

// View implements member.Rules.
func (m *machine) View() algorithm.View {
	if m.leads {
		return algorithm.View{Role: elector.Leader, Leader: m.Cfg.Self(), Term: m.term}
	}
	return algorithm.View{Role: elector.Follower, Leader: m.leader, Term: m.term}
}
