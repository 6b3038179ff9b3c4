// Package ranked is the base of algorithms without a disk, whose members know each other by
// rank: their place in Config.Order, the highest by 0.
package ranked

import (
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
)

// Nobody is the rank of no member.
const Nobody = -1

// Rules are those of one member while it takes part. What they do goes through their Member.
type Rules interface {
	// Receive acts on a message of the member of that rank.
	Receive(from int, msg algorithm.Message)
	// Tick does what is due, and returns when to do more. It ends each step.
	Tick() algorithm.Time
	// View is what the member answers if it is asked who leads.
	View() algorithm.View
}

// Member is one member, and the step that it takes. It is not safe for concurrent use.
type Member struct {
	Cfg   algorithm.Config
	Self  int    // its rank
	Links []bool // by rank: to whom there is one

	Now     algorithm.Time
	Entropy uint64
	Why     string // the rule by which the View changes in this step

	begin func(*Member) Rules
	rules Rules // nil while it takes no part
	out   []algorithm.Envelope
}

// Maker makes members whose rules begin when they start.
func Maker(begin func(*Member) Rules) func(algorithm.Config) algorithm.Machine {
	return func(cfg algorithm.Config) algorithm.Machine {
		return &Member{Cfg: cfg, Self: cfg.Rank(cfg.Self()), Links: make([]bool, len(cfg.Order)),
			begin: begin}
	}
}

// Step acts on an input; see algorithm.Machine.
func (m *Member) Step(now algorithm.Time, entropy uint64, in algorithm.Input) algorithm.Effects {
	m.Now, m.Entropy, m.out, m.Why = now, entropy, m.out[:0], ""
	switch in := in.(type) {
	case algorithm.Start:
		m.rules, m.Why = m.begin(m), "start"
	case elector.Stop:
		m.rules, m.Why = nil, "stop"
	case elector.LinkUp:
		m.link(in.Peer, true)
	case elector.LinkDown:
		m.link(in.Peer, false)
	case algorithm.Received:
		if from := m.Cfg.Rank(in.From); m.rules != nil && from >= 0 {
			m.rules.Receive(from, in.Message)
		}
	}
	wake := elector.Never
	if m.rules != nil {
		wake = m.rules.Tick()
	}
	return algorithm.Effects{Messages: m.out, Why: m.Why, Wake: wake}
}

func (m *Member) link(peer algorithm.NodeID, up bool) {
	if rank := m.Cfg.Rank(peer); rank >= 0 {
		m.Links[rank] = up
	}
}

// View is what the member answers if it is asked who leads.
func (m *Member) View() algorithm.View {
	if m.rules == nil {
		return algorithm.View{}
	}
	return m.rules.View()
}

// Name returns the member of a rank, "" for Nobody.
func (m *Member) Name(rank int) algorithm.NodeID {
	if rank == Nobody {
		return ""
	}
	return m.Cfg.Order[rank]
}

// Send sends a message to the member of a rank.
func (m *Member) Send(to int, msg algorithm.Message) {
	m.out = append(m.out, algorithm.Envelope{To: m.Cfg.Order[to], Message: msg})
}

// Broadcast sends a message to all others.
func (m *Member) Broadcast(msg algorithm.Message) {
	m.out = append(m.out, algorithm.Envelope{To: elector.AllMembers, Message: msg})
}
