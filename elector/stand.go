package elector

import (
	"time"

	"github.com/bmqelect/bmqelect/lsn"
	"github.com/bmqelect/bmqelect/scouting"
)

// standIn lets the node stand after d, in place of any moment that was armed before.
func (m *Machine) standIn(d time.Duration) {
	m.disarm()
	m.state.seek().StandAt = m.state.Now.Add(d)
}

// disarm forgets when to stand, and why then.
func (m *Machine) disarm() {
	if k := m.state.Seek; k != &nobody.Follower.seekState {
		k.StandAt, k.Discovering, k.Postponed, k.Ahead = 0, false, false, ""
	}
}

// mayStand reports whether this node may stand for election now, a pause left aside: §3.5.
func (m *Machine) mayStand() bool {
	s := &m.state
	return m.set.mayVote && !m.cfg.NotCandidate && !s.Unable && s.RestEnd <= s.Now
}

// paused reports whether leadership is to stay where it is.
func (m *Machine) paused() bool { return m.state.PauseEnd > m.state.Now }

// keptBack reports whether a pause keeps this node from standing: §9.13.
func (m *Machine) keptBack() bool {
	s := &m.state
	return m.paused() && !s.Turns.LedLast && s.Seek.SuccessorUntil <= s.Now
}

// stand opens an election. If this node is bound, it waits until it is free.
func (m *Machine) stand() {
	s := &m.state
	f := s.Follower
	m.disarm()
	if !m.mayStand() || m.keptBack() || f.Leader != "" || f.AwaitedLeader != "" {
		return
	}
	if m.bound() > s.Now {
		m.standInTurn()
		return
	}
	term := m.nextTerm()
	switch {
	case m.crowded:
		s.seek().StandAt = s.Now
	case !term.Valid():
		return // out of terms: nobody may propose one
	case m.cfg.UnsafeNoScouting:
		m.becomeCandidate(m.floor() + 1)
	default:
		m.openRound(term)
	}
}

// bound is until when this node may not vote, not even for itself as a candidate must: §3.6.
func (m *Machine) bound() Time { return max(m.state.EmbargoEnd, m.promise().Until) }

// retryStand lets a node stand in its turn if it waited only for the end of a promise.
func (m *Machine) retryStand() {
	if m.state.Role == Follower && m.state.Seek.Postponed {
		m.standInTurn()
	}
}

// nextTerm is the term that this node would propose: §3.7.
func (m *Machine) nextTerm() lsn.Term {
	if m.state.RefusedTerm < lsn.MaxTerm {
		return max(m.floor(), m.state.RefusedTerm) + 1
	}
	return m.floor() + 1 // one refusal must not silence this node for ever
}

// openRound asks every voter whether it would vote for this node: §3.8.
func (m *Machine) openRound(term lsn.Term) {
	k := m.state.seek()
	k.HintedLeader, k.HintedTerm = "", 0
	m.setNewer(newer{})
	k.Round = scouting.Open(m.draw(), term, m.set.self)
	k.RoundEnd = m.state.Now.Add(m.cfg.Timing.ScoutingResult)
	if m.hasRecord() { // §15.4
		m.scout(AllMembers)
	} else {
		for i, id := range m.set.voters {
			if i != m.set.self {
				m.scout(id)
			}
		}
	}
	m.decideRound()
}

// scout asks one member, or all.
func (m *Machine) scout(member NodeID) {
	r := &m.state.Seek.Round
	m.send(member, &Message{
		Kind: ElectionScouting, Term: m.state.Term,
		ProposedTerm: r.ProposedTerm, Round: r.ID, Priority: m.state.Priority,
		Record: m.newest(),
	})
}

// onElectionScoutingResponse counts an answer to the open round. From an answer to another round
// it learns only the term to exceed. §3.9, §8.3
func (m *Machine) onElectionScoutingResponse(from NodeID, identity Identity, msg *Message) {
	k := m.state.Seek // it is owned while a round is open
	voter, counts := m.genuine(from, identity)
	if !msg.WillVote {
		m.learn(from, msg)
	}
	if m.state.Role != Follower || !k.Round.Answers(msg.Round, msg.ProposedTerm) {
		return
	}
	m.noteNewer(from, msg)
	if !counts {
		return
	}
	a := scouting.Answer{WillVote: msg.WillVote, Cause: msg.Cause, RetryAfter: msg.RetryAfter}
	if !a.WillVote {
		// §3.13: the hint is for status only, and never a reason not to scout.
		if msg.Leader != "" && msg.Leader != m.cfg.Self && msg.LeaderTerm >= k.HintedTerm {
			k.HintedLeader, k.HintedTerm = msg.Leader, msg.LeaderTerm
		}
		// §3.12: if the next round cannot ask for a term that is high enough, it would get the
		// same no at once, again and again.
		if a.Cause == scouting.CauseTerm && m.nextTerm() <= max(msg.ProposedTerm, msg.Term) {
			a.Cause = scouting.CauseNone
		}
	}
	if m.mayBeUnaware(msg) {
		k.Unaware = k.Unaware.With(voter)
	}
	k.Round.Record(voter, a)
	m.decideRound()
}

// decideRound acts on the open round as soon as it is won or lost.
func (m *Machine) decideRound() {
	k := m.state.Seek
	r := &k.Round
	switch {
	case r.Yes.Count() >= m.set.quorum: // §3.10
		m.becomeCandidate(r.ProposedTerm)
	case m.outOfReach(r.Yes, r.No&^k.Unaware):
		m.scoutingFailed()
	case m.outOfReach(r.Yes, r.No): // §3.15: some of the noes may become a yes
		k.RoundEnd = min(k.RoundEnd, m.state.Now.Add(m.step()))
	}
}

// outOfReach reports whether noes have put a quorum out of reach: §3.11, §5.5. A voter that is not
// connected does not answer. Without a no, it pays to wait for links to come up. After a no it is
// better to ask again soon: the voter whose answer is missing is often the dead leader.
func (m *Machine) outOfReach(yes, no scouting.Voters) bool {
	connected := (yes | m.state.Linked.With(m.set.self)) &^ no
	return no != 0 && connected.Count() < m.set.quorum
}

// scoutingFailed closes the round and waits: a random time, or only until a
// quorum can be had, if that is sooner. §3.12
func (m *Machine) scoutingFailed() {
	m.state.Turns.failed()
	wait := m.randomWait()
	if retry, ok := m.state.Seek.Round.RetryAfter(m.set.quorum); ok {
		// A voter that refuses says when to ask again, but must not make this node ask all the time.
		least := max(m.state.Turns.RoundTrip, m.cfg.Timing.MaxRandomWait/100)
		wait = min(wait, max(m.cfg.Timing.stretch(min(retry, maxTimer)), least)+m.turn())
	}
	m.closeRound()
	m.standIn(wait)
	m.fetch()
}

func (m *Machine) closeRound() {
	if k := m.state.Seek; k != &nobody.Follower.seekState {
		k.Round, k.RoundEnd, k.Unaware = scouting.Round{}, 0, 0
	}
}
