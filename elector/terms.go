package elector

import (
	"github.com/bmqelect/bmqelect/lsn"
	"github.com/bmqelect/bmqelect/scouting"
)

// Why a node may vote without a write, and after a crash may follow the leader of a lower
// term than the one in which it voted last (§2.4, §3.1). L is the term on disk, R the highest
// that is reserved there; before the crash the node voted in terms up to some T, L <= T <= R.
//
// One vote a term: no vote above R left before the crash, and none at R or below leaves after.
//
// Disjoint leases: let B be elected in t, at a moment when its lease backed by the votes of a
// quorum still runs (§5.4), and C lead in a term below t. Some voter u of that quorum is one
// of any quorum that backs C. If u acknowledged C before it voted for B, it was free of that
// promise when it voted, so the lease that it backed had ended. If u acknowledged C after
// that, it has crashed between, since it was in t, and it waited for one promise's time. B
// had been elected by then, because u's vote backs no lease that long, and u votes in t no
// more. So at the moment of B's election no quorum backs C any more, and C steps down before
// it does anything else. It leads again in a term that it proposes, and that is above t, as
// a quorum has voted in t. If B is not elected by then, it is not by u's vote.
//
// Rising tokens follow: leases are disjoint, and a later leader's term is higher.
//
// Which leaders a restarted node may follow: those of any term from L on. A heartbeat of a
// leader that has been replaced is an old one, whose acknowledgement comes too late: C has
// stepped down. A leader of R or above was elected after all votes that the node forgot, or by
// them; it is acknowledged at once.

// reserve asks the disk for more terms as soon as less than half of the reserve is left above the
// term of the next election, so that no vote waits for the disk: §2.4.
func (m *Machine) reserve() {
	s, last := &m.state, m.floor()
	if m.cfg.bounds.Reserve > 0 && s.RefusedTerm <= last+m.cfg.bounds.Ahead {
		last = max(last, s.RefusedTerm)
	}
	if last+m.cfg.bounds.Reserve/2 <= s.Asked {
		return
	}
	s.Asked = min(last+m.cfg.bounds.Reserve, lsn.MaxTerm)
	m.eff.Persist = Terms{Entered: s.Term, Reserved: s.Asked}
}

// giveBack asks the disk to forget the reserved terms that were not used: §2.4. Otherwise the next
// start would look like one after a crash.
func (m *Machine) giveBack() {
	if m.cfg.bounds.Reserve > 0 {
		m.eff.Persist = Terms{Entered: m.state.Term, Reserved: m.floor()}
	}
}

// tellFloor tells a voter the floor below which it would be refused, so that the next election
// begins above it, and all have reserved enough terms by then: §3.1. The message answers no round.
func (m *Machine) tellFloor(to NodeID) {
	if m.set.mayVote && m.state.Floor > m.state.Term {
		no := scouting.Answer{Cause: scouting.CauseTerm}
		reply := m.reply(ElectionScoutingResponse, no, m.state.Floor)
		m.send(to, &reply)
	}
}

// floor is the highest term in which this node may have voted: §3.1.
func (m *Machine) floor() lsn.Term { return max(m.state.Term, m.state.Floor) }

// mayHaveMoved reports whether this node may have voted above term a moment ago, before it crashed.
// It must not support the leader of term then: its vote may be about to elect another node, and
// both leaders would count on it. §3.1
func (m *Machine) mayHaveMoved(term lsn.Term) bool {
	return term < m.state.Floor && m.state.Now < m.state.EmbargoEnd
}
