package ring

import (
	"slices"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/member"
	"github.com/bmqelect/bmqelect/lsn"
)

// machine is a member.
type machine struct {
	*member.Member
	list bool  // a list ring; otherwise Chang-Roberts
	ring []int // the members after this one, in the order of the ring, itself last

	beat, silence, tr time.Duration

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

const nobody = member.Nobody

func maker(list bool) func(algorithm.Config) algorithm.Machine {
	return member.Maker(func(base *member.Member) member.Rules {
		n, t := len(base.Cfg.Order), base.Cfg.Elector.Timing
		m := &machine{
			Member: base, list: list, beat: t.HeartbeatBroadcast, silence: t.Inactivity(),
			tr:     3 * time.Duration(n) * t.ElectionResult / 2,
			passed: make([]lsn.Term, n), elected: make([]lsn.Term, n),
			leader: nobody, recover: base.Now.Add(t.ElectionResult), restart: elector.Never,
		}
		names := slices.Sorted(slices.Values(m.Cfg.Order))
		at := slices.Index(names, m.Cfg.Self())
		for _, id := range slices.Concat(names[at+1:], names[:at+1]) {
			m.ring = append(m.ring, m.Cfg.Rank(id))
		}
		return m
	})
}

// Receive implements member.Rules.
func (m *machine) Receive(from int, msg algorithm.Message) {
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
	return !slices.ContainsFunc(ids, func(id algorithm.NodeID) bool { return m.Cfg.Rank(id) < 0 })
}

// Tick implements member.Rules.
func (m *machine) Tick() algorithm.Time {
	if m.follows() && m.Now >= m.silent {
		m.leader, m.Why = nobody, "the leader is silent"
		m.start("the leader is silent")
	}
	if m.Now >= m.recover {
		m.recover = elector.Never
		m.start("recovery")
	}
	if m.Now >= m.restart {
		m.takes = false
		m.start("no ELECTED")
	}
	if m.leads() && m.Now >= m.nextBeat {
		m.nextBeat = m.Now.Add(m.beat)
		m.Broadcast(Heartbeat{Round: m.term})
	}
	switch {
	case m.leads():
		return min(m.recover, m.restart, m.nextBeat)
	case m.follows():
		return min(m.recover, m.restart, m.silent)
	}
	return min(m.recover, m.restart)
}

func (m *machine) leads() bool   { return m.leader == m.Self }
func (m *machine) follows() bool { return m.leader != nobody && m.leader != m.Self }

// View implements member.Rules.
func (m *machine) View() algorithm.View {
	if m.leads() {
		return algorithm.View{Role: elector.Leader, Leader: m.Cfg.Self(), Term: m.term}
	}
	v := algorithm.View{Role: elector.Follower, Term: m.round}
	if m.takes {
		v.Role = elector.Candidate
	}
	if m.follows() {
		v.Leader, v.Term = m.Cfg.Order[m.leader], m.term
	}
	return v
}

// pass sends a token to the next member; alone, a member is its own next.
func (m *machine) pass(token algorithm.Message) {
	for _, next := range m.ring {
		if next == m.Self {
			m.Receive(next, token)
			return
		}
		if m.Links.Has(next) {
			m.Send(next, token)
			return
		}
	}
}
