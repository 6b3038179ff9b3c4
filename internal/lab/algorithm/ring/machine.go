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

	round   lsn.Term     // the highest heard of
	passed  []lsn.Term   // by initiator: round of the newest ELECTION that passed
	elected []lsn.Term   // by initiator: round of the newest ELECTED that passed
	takes   bool         // part in an election: a participant
	term    lsn.Term     // the round in which the leader was elected
	recover member.Timer // when to start the first election
	restart member.Timer // when a participant starts again
	silent  member.Timer // when another leader has failed
	beat    member.Timer // of a leader
}

func maker(list bool) func(algorithm.Config) algorithm.Machine {
	return member.Maker(func(base *member.Member) member.Rules {
		n := len(base.Cfg.Order)
		m := &machine{Member: base, list: list, passed: make([]lsn.Term, n),
			elected: make([]lsn.Term, n), recover: base.After(base.Timing.ElectionResult)}
		names := slices.Sorted(slices.Values(m.Cfg.Order))
		at := slices.Index(names, m.Cfg.Self())
		for _, id := range slices.Concat(names[at+1:], names[:at+1]) {
			m.ring = append(m.ring, m.Rank(id))
		}
		return m
	})
}

// Receive implements member.Rules. A real peer may send anything.
func (m *machine) Receive(from int, msg algorithm.Message) {
	known := func(ids ...algorithm.NodeID) bool {
		return !slices.ContainsFunc(ids, func(id algorithm.NodeID) bool { return m.Rank(id) < 0 })
	}
	switch msg := msg.(type) {
	case Heartbeat:
		m.onHeartbeat(from, msg.Round)
	case Elected:
		if known(msg.Leader, msg.Initiator) {
			m.onElected(msg)
		}
	case Election:
		if len(msg.IDs) > 0 && known(msg.IDs...) {
			m.onElection(msg)
		}
	}
}

// start starts an election, unless this member takes part in one.
func (m *machine) start(why string) {
	if m.takes {
		return
	}
	m.takePart(why)
	m.round++
	m.pass(Election{IDs: []algorithm.NodeID{m.Cfg.Self()}, Round: m.round})
}

// takePart makes this member a participant. T_r is 3 n delays.
func (m *machine) takePart(why string) {
	if !m.takes {
		tr := 3 * time.Duration(len(m.ring)) * m.Timing.ElectionResult / 2
		m.takes, m.restart, m.Why = true, m.After(tr), why
	}
}

// onElection passes a token on, or replaces it, or ends its way.
func (m *machine) onElection(token Election) {
	initiator := m.Rank(token.IDs[0])
	m.round, m.Why = max(m.round, token.Round), "ELECTION"
	if slices.Contains(token.IDs, m.Cfg.Self()) {
		highest := slices.MinFunc(token.IDs, func(a, b algorithm.NodeID) int {
			return m.Rank(a) - m.Rank(b)
		})
		m.onElected(Elected{Leader: highest, Initiator: token.IDs[0], Round: token.Round})
		return
	}
	if token.Round <= m.passed[initiator] {
		return
	}
	m.passed[initiator] = token.Round
	switch {
	case m.list:
		token.IDs = append(slices.Clone(token.IDs), m.Cfg.Self())
	case m.Self < initiator:
		m.start("ELECTION of a lower member") // a participant swallows it
		return
	}
	m.takePart("ELECTION")
	m.pass(token)
}

// onElected accepts the result of an election, and passes it on once.
func (m *machine) onElected(token Elected) {
	initiator := m.Rank(token.Initiator)
	if token.Round <= m.elected[initiator] {
		return
	}
	m.elected[initiator], m.round = token.Round, max(m.round, token.Round)
	switch leader := m.Rank(token.Leader); {
	case leader != m.Self:
		m.Leader, m.beat, m.silent = leader, member.Timer{}, m.After(m.Timing.Inactivity())
	case m.Leader != m.Self:
		m.Leader, m.beat, m.silent = leader, m.After(0), member.Timer{}
	}
	m.term, m.Why = token.Round, "ELECTED"
	m.takes, m.restart = false, member.Timer{}
	m.pass(token)
}

// onHeartbeat keeps the leader. Two leaders that hear each other want an election.
func (m *machine) onHeartbeat(from int, round lsn.Term) {
	m.round, m.Why = max(m.round, round), "HEARTBEAT"
	switch m.Leader {
	case from:
		m.term, m.silent = round, m.After(m.Timing.Inactivity())
	case m.Self:
		m.start("HEARTBEAT of another leader")
	}
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

// Tick implements member.Rules.
func (m *machine) Tick() algorithm.Time {
	if m.Due(&m.silent) {
		m.Leader, m.Why = member.Nobody, "the leader is silent"
		m.start(m.Why)
	}
	if m.Due(&m.recover) {
		m.start("recovery")
	}
	if m.Due(&m.restart) {
		m.takes = false
		m.start("no ELECTED")
	}
	if m.Due(&m.beat) {
		m.beat = m.After(m.Timing.HeartbeatBroadcast)
		m.Broadcast(Heartbeat{Round: m.term})
	}
	m.Role, m.Term = elector.Follower, m.round
	if m.takes {
		m.Role = elector.Candidate
	}
	if m.Leader != member.Nobody {
		m.Term = m.term
	}
	if m.Leader == m.Self {
		m.Role = elector.Leader
	}
	return member.Earliest(m.recover, m.restart, m.silent, m.beat)
}
