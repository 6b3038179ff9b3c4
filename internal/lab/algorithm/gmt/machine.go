package gmt

import (
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/lsn"
)

// machine is a member with its two machines, elector.go and candidate.go.
type machine struct {
	cfg      algorithm.Config
	self     int // its rank
	rtt, hbt time.Duration

	now     algorithm.Time
	running bool
	out     []algorithm.Envelope // of this step
	why     string               // of this step

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

func newMachine(cfg algorithm.Config) algorithm.Machine {
	n := len(cfg.Order)
	return &machine{
		cfg: cfg, self: cfg.Rank(cfg.Self()),
		rtt: cfg.Elector.Timing.ElectionResult, hbt: cfg.Elector.Timing.HeartbeatBroadcast,
		slate: make([]*lsn.LSN, n), tally: make([]*lsn.LSN, n),
	}
}

// Step acts on an input; see algorithm.Machine.
func (m *machine) Step(now algorithm.Time, _ uint64, in algorithm.Input) algorithm.Effects {
	m.now, m.out, m.why = now, m.out[:0], ""
	switch in := in.(type) {
	case algorithm.Start:
		m.running, m.why = true, "start"
		m.timer = now.Add(5 * m.hbt)
	case elector.Stop:
		m.running, m.leads, m.why = false, false, "stop"
	case algorithm.Received:
		if from := m.cfg.Rank(in.From); m.running && from >= 0 {
			m.receive(from, in)
		}
	}
	wake := elector.Never
	if m.running {
		wake = m.tick()
	}
	return algorithm.Effects{Messages: m.out, Why: m.why, Wake: wake}
}

// tick does what is due, and returns when to do more.
func (m *machine) tick() algorithm.Time {
	if m.now >= m.timer {
		m.timeOut()
	}
	if m.leads && m.now >= m.nextLead {
		m.lead()
	}
	if m.leads {
		return min(m.timer, m.nextLead)
	}
	return m.timer
}

func (m *machine) receive(from int, in algorithm.Received) {
	switch msg := in.Message.(type) {
	case Lead:
		m.onLead(in.From, msg.At)
	case Elect:
		m.onElect(from, msg.Seen)
	case Vote:
		m.onVote(from, msg.Claim)
	}
}

// View is what the member answers when it is asked who leads.
func (m *machine) View() algorithm.View {
	switch {
	case !m.running:
		return algorithm.View{}
	case m.leads:
		return algorithm.View{Role: elector.Leader, Leader: m.cfg.Self(), Term: m.term}
	}
	return algorithm.View{Role: elector.Follower, Leader: m.leader, Term: m.term}
}

func (m *machine) send(to algorithm.NodeID, msg algorithm.Message) {
	m.out = append(m.out, algorithm.Envelope{To: to, Message: msg})
}
