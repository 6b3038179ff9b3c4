package ring

import (
	"slices"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/lsn"
)

// machine is a member. Members are known by their rank, the highest by 0.
type machine struct {
	cfg  algorithm.Config
	list bool  // a list ring; otherwise Chang-Roberts
	self int   // its rank
	ring []int // the members after this one, in the order of the ring, itself last

	beat, silence, wait, tr time.Duration

	now     algorithm.Time
	running bool
	out     []algorithm.Envelope
	why     string

	links    []bool     // by rank
	round    lsn.Term   // the highest heard of
	passed   []lsn.Term // by initiator: round of the newest ELECTION that passed
	elected  []lsn.Term // by initiator: round of the newest ELECTED that passed
	takes    bool       // part in an election: a participant
	leader   int
	term     lsn.Term       // the round in which leader was elected
	recover  algorithm.Time // when to start the first election
	restart  algorithm.Time // when a participant starts again
	silent   algorithm.Time // when the leader has failed
	nextBeat algorithm.Time // of a leader
}

// nobody is the rank of no member.
const nobody = -1

func maker(list bool) func(algorithm.Config) algorithm.Machine {
	return func(cfg algorithm.Config) algorithm.Machine {
		n, t := len(cfg.Order), cfg.Elector.Timing
		m := &machine{
			cfg: cfg, list: list, self: cfg.Rank(cfg.Self()),
			beat: t.HeartbeatBroadcast, silence: t.Inactivity(), wait: t.ElectionResult,
			tr:    3 * time.Duration(n) * t.ElectionResult / 2,
			links: make([]bool, n), passed: make([]lsn.Term, n), elected: make([]lsn.Term, n),
		}
		names := slices.Sorted(slices.Values(cfg.Order))
		at := slices.Index(names, cfg.Self())
		for _, id := range slices.Concat(names[at+1:], names[:at+1]) {
			m.ring = append(m.ring, cfg.Rank(id))
		}
		return m
	}
}

// Step acts on an input; see algorithm.Machine.
func (m *machine) Step(now algorithm.Time, _ uint64, in algorithm.Input) algorithm.Effects {
	m.now, m.out, m.why = now, m.out[:0], ""
	switch in := in.(type) {
	case algorithm.Start:
		m.running, m.why, m.leader = true, "start", nobody
		m.recover, m.restart = now.Add(m.wait), elector.Never
	case elector.Stop:
		m.running, m.why = false, "stop"
	case elector.LinkUp:
		m.setLink(in.Peer, true)
	case elector.LinkDown:
		m.setLink(in.Peer, false)
	case algorithm.Received:
		if from := m.cfg.Rank(in.From); m.running && from >= 0 {
			m.receive(from, in.Message)
		}
	}
	wake := elector.Never
	if m.running {
		wake = m.tick()
	}
	return algorithm.Effects{Messages: m.out, Why: m.why, Wake: wake}
}

func (m *machine) setLink(peer algorithm.NodeID, up bool) {
	if rank := m.cfg.Rank(peer); rank >= 0 {
		m.links[rank] = up
	}
}

func (m *machine) receive(from int, msg algorithm.Message) {
	switch msg := msg.(type) {
	case Heartbeat:
		m.onHeartbeat(from, msg.Round)
	case Elected:
		if m.know(msg.Leader, msg.Initiator) {
			m.onElected(msg)
		}
	case Election:
		if len(msg.IDs) > 0 && m.know(msg.IDs...) {
			m.onElection(msg)
		}
	}
}

// know reports whether all are members: a real peer may send anything.
func (m *machine) know(ids ...algorithm.NodeID) bool {
	return !slices.ContainsFunc(ids, func(id algorithm.NodeID) bool { return m.cfg.Rank(id) < 0 })
}

// tick does what is due, and returns when to do more.
func (m *machine) tick() algorithm.Time {
	if m.follows() && m.now >= m.silent {
		m.leader, m.why = nobody, "the leader is silent"
		m.start("the leader is silent")
	}
	if m.now >= m.recover {
		m.recover = elector.Never
		m.start("recovery")
	}
	if m.now >= m.restart {
		m.takes = false
		m.start("no ELECTED")
	}
	if m.leads() && m.now >= m.nextBeat {
		m.nextBeat = m.now.Add(m.beat)
		m.send(elector.AllMembers, Heartbeat{Round: m.term})
	}
	switch {
	case m.leads():
		return min(m.recover, m.restart, m.nextBeat)
	case m.follows():
		return min(m.recover, m.restart, m.silent)
	}
	return min(m.recover, m.restart)
}

func (m *machine) leads() bool   { return m.leader == m.self }
func (m *machine) follows() bool { return m.leader != nobody && m.leader != m.self }

// View is what the member answers when it is asked who leads.
func (m *machine) View() algorithm.View {
	switch {
	case !m.running:
		return algorithm.View{}
	case m.leads():
		return algorithm.View{Role: elector.Leader, Leader: m.cfg.Self(), Term: m.term}
	}
	v := algorithm.View{Role: elector.Follower, Term: m.round}
	if m.takes {
		v.Role = elector.Candidate
	}
	if m.follows() {
		v.Leader, v.Term = m.cfg.Order[m.leader], m.term
	}
	return v
}

func (m *machine) send(to algorithm.NodeID, msg algorithm.Message) {
	m.out = append(m.out, algorithm.Envelope{To: to, Message: msg})
}

// pass sends a token to the next member; alone, a member is its own next.
func (m *machine) pass(token algorithm.Message) {
	for _, next := range m.ring {
		if next == m.self {
			m.receive(next, token)
			return
		}
		if m.links[next] {
			m.send(m.cfg.Order[next], token)
			return
		}
	}
}
