package ring

import (
	"slices"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/lsn"
)

// start starts an election, unless this member takes part in one.
func (m *machine) start(why string) {
	if m.takes {
		return
	}
	m.takePart(why)
	m.round++
	m.pass(Election{IDs: []algorithm.NodeID{m.Cfg.Self()}, Round: m.round})
}

// takePart makes this member a participant.
func (m *machine) takePart(why string) {
	if !m.takes {
		m.takes, m.restart, m.Why = true, m.Now.Add(m.tr), why
	}
}

// onElection passes a token on, or replaces it, or ends its way.
func (m *machine) onElection(token Election) {
	initiator := m.Cfg.Rank(token.IDs[0])
	m.round, m.Why = max(m.round, token.Round), "ELECTION"
	if slices.Contains(token.IDs, m.Cfg.Self()) {
		highest := slices.MinFunc(token.IDs, func(a, b algorithm.NodeID) int {
			return m.Cfg.Rank(a) - m.Cfg.Rank(b)
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
	initiator := m.Cfg.Rank(token.Initiator)
	if token.Round <= m.elected[initiator] {
		return
	}
	m.elected[initiator], m.round = token.Round, max(m.round, token.Round)
	if leader := m.Cfg.Rank(token.Leader); leader != m.leader {
		m.leader, m.nextBeat = leader, m.Now
	}
	m.term, m.Why = token.Round, "ELECTED"
	m.takes, m.restart = false, elector.Never
	m.silent = m.Now.Add(m.silence)
	m.pass(token)
}

// onHeartbeat keeps the leader. Two leaders that hear each other want an election.
func (m *machine) onHeartbeat(from int, round lsn.Term) {
	m.round, m.Why = max(m.round, round), "HEARTBEAT"
	switch {
	case from == m.leader:
		m.term = round
		m.silent = m.Now.Add(m.silence)
	case m.leads():
		m.start("HEARTBEAT of another leader")
	}
}
