package bully

import (
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
)

// machine is what the variants share: a member, and what a step of its rules asks for.
// Members are known by their rank, the highest by 0.
type machine struct {
	cfg   algorithm.Config
	self  int // its rank
	n     int // voters
	make  func(*machine) rules
	rules rules // nil while it takes no part

	beat    time.Duration // between heartbeats
	silence time.Duration // after which a member has failed
	ta, tc  time.Duration // waits for an answer, for a coordinator

	now     algorithm.Time
	entropy uint64
	out     []algorithm.Envelope
	why     string
}

// rules are those of one variant. They begin when the member starts.
type rules interface {
	receive(from int, msg algorithm.Message)
	tick() algorithm.Time // does what is due, and returns when to do more
	view() algorithm.View
}

// nobody is the rank of no member.
const nobody = -1

func maker(rules func(*machine) rules) func(algorithm.Config) algorithm.Machine {
	return func(cfg algorithm.Config) algorithm.Machine {
		t := cfg.Elector.Timing
		return &machine{
			cfg: cfg, self: cfg.Rank(cfg.Self()), n: len(cfg.Order), make: rules,
			beat: t.HeartbeatBroadcast, silence: t.Inactivity(),
			ta: t.ElectionResult, tc: 2 * t.ElectionResult,
		}
	}
}

// Step acts on an input; see algorithm.Machine.
func (m *machine) Step(now algorithm.Time, entropy uint64, in algorithm.Input) algorithm.Effects {
	m.now, m.entropy, m.out, m.why = now, entropy, m.out[:0], ""
	switch in := in.(type) {
	case algorithm.Start:
		m.rules, m.why = m.make(m), "start"
	case elector.Stop:
		m.rules, m.why = nil, "stop"
	case algorithm.Received:
		if from := m.cfg.Rank(in.From); m.rules != nil && from >= 0 {
			m.rules.receive(from, in.Message)
		}
	}
	wake := elector.Never
	if m.rules != nil {
		wake = m.rules.tick()
	}
	return algorithm.Effects{Messages: m.out, Why: m.why, Wake: wake}
}

// View is what the member answers when it is asked who leads.
func (m *machine) View() algorithm.View {
	if m.rules == nil {
		return algorithm.View{}
	}
	return m.rules.view()
}

// name returns the member of a rank, "" for nobody.
func (m *machine) name(rank int) algorithm.NodeID {
	if rank == nobody {
		return ""
	}
	return m.cfg.Order[rank]
}

func (m *machine) send(to int, msg algorithm.Message) {
	m.out = append(m.out, algorithm.Envelope{To: m.cfg.Order[to], Message: msg})
}

func (m *machine) broadcast(msg algorithm.Message) {
	m.out = append(m.out, algorithm.Envelope{To: elector.AllMembers, Message: msg})
}

func (m *machine) sendHigher(msg algorithm.Message) {
	for i := range m.self {
		m.send(i, msg)
	}
}

func (m *machine) sendLower(msg algorithm.Message) {
	for i := m.self + 1; i < m.n; i++ {
		m.send(i, msg)
	}
}
