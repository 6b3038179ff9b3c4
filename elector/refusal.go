package elector

import (
	"github.com/bmqelect/bmqelect/lsn"
	"github.com/bmqelect/bmqelect/scouting"
)

// question is what a scouting voter asks; the zero question is none. A voter remembers the newest
// question that it refused because of a leader or a promise. If that leader cedes or is proven
// dead, the voter answers again. After a death the asker keeps its round open for that: §3.15.
type question struct {
	From     NodeID
	Term     lsn.Term // proposed
	Round    uint64
	Priority int
	Record   lsn.LSN
}

// asked returns the question of asker that msg puts, or answers.
func asked(asker NodeID, msg *Message) question {
	return question{asker, msg.ProposedTerm, msg.Round, msg.Priority, msg.Record}
}

// answerAgain says yes to the voter that this node refused last for a leader, if it would
// support it now that the leader has ceded or is proven dead.
func (m *Machine) answerAgain() {
	q := *m.state.Refused
	if q.From == "" {
		return
	}
	if a := m.weigh(q); a.WillVote {
		m.state.Refused = &nobody.Refused
		m.answer(q, a)
	}
}

// mayBeUnaware reports whether a no may come from a voter that does not know yet, as this node
// does, that the leader is dead. The voter will soon know, and then answers again.
func (m *Machine) mayBeUnaware(msg *Message) bool {
	bound := msg.Cause == scouting.CausePromise ||
		msg.Cause == scouting.CauseLeader && msg.Leader == m.state.Turns.LastLeader
	return m.state.Seek.LeaderDied && !msg.WillVote && bound && m.step() != 0
}
