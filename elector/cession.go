package elector

import (
	"errors"
	"fmt"

	"github.com/bmqelect/bmqelect/lsn"
)

// ErrNotLeader means that only a leader can do this, and this node is none.
var ErrNotLeader = errors.New("this node is not the leader")

// cede releases the promises made to this node for the term that it leads or
// proposed. It does nothing for a node that asked for none.
func (m *Machine) cede(successor NodeID) {
	if m.cfg.UnsafeNoScouting && successor == "" {
		return // the unextended algorithm knows no promises
	}
	if term := m.askedFor(); term != 0 {
		m.broadcast(Message{Kind: LeadershipCession, Term: term, Successor: successor})
	}
}

// askedFor is the highest term in which this node holds promises for its own
// leadership; 0 for none.
func (m *Machine) askedFor() lsn.Term {
	term := m.state.Leader.Term
	if b := m.ballot(); b.Sent {
		term = max(term, b.Term)
	}
	return term
}

// hasCeded reports whether id gave up this node's term, so that nothing of that
// leadership counts any more.
func (m *Machine) hasCeded(id NodeID, term lsn.Term) bool {
	voter, ok := m.voter(id)
	return ok && term == m.state.Term && m.state.Ceded.Has(voter)
}

// onLeadershipCession releases what this node promised to the sender and, if it
// followed or expected the sender, looks for another leader.
func (m *Machine) onLeadershipCession(from NodeID, msg *Message) {
	s := &m.state
	if voter, ok := m.voter(from); ok && msg.Term == s.Term {
		s.Ceded = s.Ceded.With(voter)
	}
	if s.Role != Follower {
		return // it holds no promise and follows nobody
	}
	released := s.Promise.To == from && s.Promise.Term <= msg.Term
	if released {
		s.Promise = Promise{}
	}
	switch {
	case m.followed(from, msg.Term):
		m.forsake(from, msg.Successor)
		m.standAfter(msg.Successor)
	case released && msg.Successor != "":
		m.standAfter(msg.Successor) // it had lost sight of the leader before
	case released:
		m.hindranceGone()
	}
}

// followed reports whether this node follows id, or waits for id's heartbeat, in
// term or a lower one; a cession of an older leadership comes too late.
func (m *Machine) followed(id NodeID, term lsn.Term) bool {
	f := &m.state.Follower
	if f.Leader != "" {
		return f.Leader == id && f.LeaderTerm <= term
	}
	return f.Tentative == id && m.state.Term <= term
}

// forsake forgets the leader or tentative that ceded.
func (m *Machine) forsake(id, successor NodeID) {
	switch {
	case m.state.Follower.Leader != id:
		m.forgetLeader()
	case successor != "":
		m.loseLeader(Transferred, id)
	default:
		m.loseLeader(LeaderCeded, id)
	}
}

// standAfter arms the next attempt to stand after a cession: the named successor
// at once, the others only after it had the time for an election. Nobody stays back
// for a name that is no voter's.
func (m *Machine) standAfter(successor NodeID) {
	_, isVoter := m.voter(successor)
	switch {
	case !isVoter:
		m.backOff()
	case successor == m.cfg.Self:
		m.state.Follower.SuccessorUntil = m.state.Now.Add(m.cfg.Timing.ElectionResult)
		m.stand()
	default:
		m.standIn(m.cfg.Timing.ElectionResult + m.randomWait())
	}
}

// Transferable returns nil if this node leads and could hand over to the given
// voter now, and else why not: ErrNotLeader, or what that voter lacks.
func (m *Machine) Transferable(to NodeID) error {
	if m.state.Role != Leader {
		return ErrNotLeader
	}
	voter, ok := m.voter(to)
	if !ok {
		return fmt.Errorf("cannot hand over to %q: not one of the voters %q", to, m.cfg.voters)
	}
	if err := m.unfit(voter); err != nil {
		return fmt.Errorf("cannot hand over to %q: %w", to, err)
	}
	return nil
}

// unfit says what keeps a voter from being this leader's successor; nil if nothing does.
func (m *Machine) unfit(voter int) error {
	l := &m.state.Leader
	switch {
	case voter == m.cfg.self:
		return errLeads
	case !m.state.Linked.Has(voter):
		return errNotConnected
	case !m.supports(voter):
		return errNoAck
	case !l.Fit.Has(voter):
		return errNotCandidate
	case l.Short.Has(voter):
		return errShort
	}
	return nil
}

// What keeps a voter from being the successor. A leader with Takeover asks in
// every period and must not allocate.
var (
	errLeads        = errors.New("it leads already")
	errNotConnected = errors.New("it is not connected")
	errNoAck        = errors.New("it has not acked a heartbeat for as long as the lease")
	errNotCandidate = errors.New("it is not a candidate")
	errShort        = errors.New("it is connected to too few voters to win an election")
)

// supports reports whether voter's newest ack still backs the lease.
func (m *Machine) supports(voter int) bool {
	at := m.state.Leader.Support[voter]
	return voter == m.cfg.self || at != 0 && at.Add(m.cfg.Timing.Lease) > m.state.Now
}

// onNodeUnavailable is a node's word that it stops taking part: it answers
// nobody any more, though its link may stay for other elections. It is late if the
// node began anew since and leads in a higher term.
func (m *Machine) onNodeUnavailable(from NodeID, msg *Message) {
	if f := &m.state.Follower; f.Leader != from || msg.Term >= f.LeaderTerm {
		m.linkDown(from)
	}
}
