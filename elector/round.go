package elector

import (
	"github.com/bmqelect/bmqelect/lsn"
	"github.com/bmqelect/bmqelect/scouting"
)

// nextTerm is the term that this node would propose: above its own and above
// what it learnt, as long as there is a term above that. Otherwise one refusal
// with the highest term would keep it from ever standing again.
func (m *Machine) nextTerm() lsn.Term {
	if m.state.Learnt < lsn.MaxTerm {
		return max(m.state.Term, m.state.Learnt) + 1
	}
	return m.state.Term + 1
}

// openRound asks every voter whether it would vote for this node.
func (m *Machine) openRound(term lsn.Term) {
	f := &m.state.Follower
	f.IndirectLeader, f.IndirectTerm = "", 0
	f.Round = scouting.Open(m.draw(), term, m.cfg.self)
	f.RoundEnd = m.state.Now.Add(m.cfg.Timing.ScoutingResult)
	for i := range m.cfg.voters {
		m.scout(i)
	}
	m.settleRound()
}

// scout asks one voter, unless it has answered.
func (m *Machine) scout(voter int) {
	r := &m.state.Follower.Round
	if r.Answered(voter) {
		return
	}
	m.send(m.cfg.voters[voter], Message{
		Kind: ElectionScouting, Term: m.state.Term,
		ProposedTerm: r.ProposedTerm, Round: r.ID, Priority: m.cfg.Priority,
	})
}

// onElectionScoutingResponse counts an answer to the open round; answers to any
// other count for nothing.
func (m *Machine) onElectionScoutingResponse(from NodeID, msg *Message) {
	f := &m.state.Follower
	voter, _ := m.voter(from)
	if m.state.Role != Follower || !f.Round.Answers(msg.Round, msg.ProposedTerm) || f.Round.Answered(voter) {
		return
	}
	if !msg.WillVote {
		m.learn(from, msg)
		m.hint(msg)
	}
	f.Round.Record(voter, m.counted(msg))
	m.settleRound()
}

// counted is an answer as the tally takes it. A no because of the term is mended
// by a higher one; if the next round could not ask for a term that is high enough,
// it would get the same no, at once and again and again.
func (m *Machine) counted(msg *Message) scouting.Answer {
	a := scouting.Answer{WillVote: msg.WillVote, Cause: msg.Cause, RetryAfter: msg.RetryAfter}
	if a.Cause == scouting.CauseTerm && m.nextTerm() <= max(msg.ProposedTerm, msg.Term) {
		a.Cause = scouting.CauseNone
	}
	return a
}

// hint remembers a leader that is known from a refusal only, for status; it is
// never a reason to stop scouting for good.
func (m *Machine) hint(msg *Message) {
	f := &m.state.Follower
	if msg.Leader != "" && msg.Leader != m.cfg.Self && msg.LeaderTerm >= f.IndirectTerm {
		f.IndirectLeader, f.IndirectTerm = msg.Leader, msg.LeaderTerm
	}
}

// settleRound acts on the open round as soon as it is decided.
func (m *Machine) settleRound() {
	r := &m.state.Follower.Round
	verdict := r.Verdict(len(m.cfg.voters), m.cfg.quorum)
	switch {
	case verdict == scouting.Won:
		m.becomeCandidate(r.ProposedTerm)
	case verdict == scouting.Lost || m.hopeless(r.Yes, r.No):
		m.scoutingFailed()
	}
}

// hopeless reports whether noes leave too few voters that could still say yes:
// nobody answers who is not connected. Without a no it is worth to wait for links
// to come up; after one it is better to ask again, and soon: the voter that lacks is
// often the dead leader.
func (m *Machine) hopeless(yes, no Voters) bool {
	able := (yes | m.state.Linked.With(m.cfg.self)) &^ no
	return no != 0 && able.Count() < m.cfg.quorum
}

// scoutingFailed closes the round and waits: a random time, or only until a
// quorum can be had, when that is sooner.
func (m *Machine) scoutingFailed() {
	f := &m.state.Follower
	wait := m.randomWait()
	if retry, ok := f.Round.RetryAfter(m.cfg.quorum); ok {
		wait = min(wait, m.cfg.Timing.stretch(min(retry, maxTimer)))
	}
	m.closeRound()
	m.standIn(wait)
}

func (m *Machine) closeRound() {
	f := &m.state.Follower
	f.Round, f.RoundEnd = scouting.Round{}, 0
}
