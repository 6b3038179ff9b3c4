package elector

import (
	"errors"
	"fmt"
	"math"

	"github.com/bmqelect/bmqelect/scouting"
)

// ErrNotLeader means that only a leader can do this, and this node is none.
var ErrNotLeader = errors.New("this node is not the leader")

// Transferable returns nil if this node leads and could hand over to the given
// voter now. Otherwise it says why not: ErrNotLeader, or what keeps the voter from it.
func (m *Machine) Transferable(to NodeID) error {
	if m.state.Role != Leader {
		return ErrNotLeader
	}
	voter, ok := m.voter(to)
	if !ok {
		return fmt.Errorf("cannot hand over to %q: not one of the voters %s", to,
			list(m.set.voters))
	}
	if err := m.ineligible(voter); err != nil {
		return fmt.Errorf("cannot hand over to %q: %w", to, err)
	}
	return nil
}

// The reasons why a voter cannot be the successor. They are variables because a leader with
// Takeover asks in every period and must not allocate.
var (
	errLeads        = errors.New("it leads already")
	errNotConnected = errors.New("it is not connected")
	errNoAck        = errors.New("it has not acked a heartbeat for as long as the lease")
	errNotCandidate = errors.New("it is not a candidate")
	errBehind       = errors.New("it has not acknowledged the newest records")
	errShort        = errors.New("it is connected to too few voters to win an election")
)

// ineligible says what keeps a voter from being this leader's successor; nil if it is
// fit: §9.5.
func (m *Machine) ineligible(voter int) error {
	l := m.state.Leader
	switch {
	case voter == m.set.self:
		return errLeads
	case !m.state.Linked.Has(voter):
		return errNotConnected
	case !m.supports(voter):
		return errNoAck
	case !l.MayStand.Has(voter):
		return errNotCandidate
	case l.LacksQuorum.Has(voter):
		return errShort
	case m.hasRecord() && !m.hasStored(voter) && !m.state.Writing.Before.Has(voter): // §15.11
		return errBehind
	}
	return nil
}

// noteFitness notes what an ack says of the voter that sent it. lapsed means that its
// acks had stayed away for as long as the lease.
func (m *Machine) noteFitness(voter int, msg *Message, lapsed bool) {
	l := m.state.Leader
	l.MayStand, l.LacksQuorum = l.MayStand.Without(voter), l.LacksQuorum.Without(voter)
	if l.Cold = l.Cold.Without(voter); msg.Cold {
		l.Cold = l.Cold.With(voter)
	}
	// An older build does not say what it reaches; that does not count against it.
	short := msg.Reach != 0 && int(msg.Reach) < m.set.quorum
	if short {
		l.LacksQuorum = l.LacksQuorum.With(voter)
	}
	if msg.MayStand {
		l.MayStand = l.MayStand.With(voter)
	}
	by := &m.state.By[voter]
	switch {
	case !msg.MayStand || short:
		by.FitSince = 0
	case lapsed || by.FitSince == 0:
		by.FitSince = m.state.Now
	}
	m.noteSettled(voter)
	by.Priority = saturate(msg.Priority)
}

// saturate bounds a priority to what the leader's state has room for.
func saturate(priority int) int32 { return int32(min(max(priority, math.MinInt32), math.MaxInt32)) }

// best is the voter with the highest rank that is fit and belongs to among; "" if there is none. A
// voter that may have started a moment ago, and cannot stand yet, is the last choice, as is one
// that lacks the newest record: §9.6, §15.11. One that is not prepared comes before these: §9.14.
func (m *Machine) best(among func(voter int) bool) NodeID {
	l := m.state.Leader
	var best scouting.Rank
	top := 0 // how suited the best is, before its rank
	for i, id := range m.set.voters {
		if m.ineligible(i) != nil || !among(i) {
			continue
		}
		r := scouting.Rank{Priority: int(m.state.By[i].Priority), Node: id}
		suited := 0
		switch {
		case !l.Settled.Has(i) || m.hasRecord() && !m.hasStored(i):
		case l.Cold.Has(i):
			suited = 1
		default:
			suited = 2
		}
		if best.Node == "" || suited > top || suited == top && r.Compare(best) > 0 {
			best, top = r, suited
		}
	}
	return best.Node
}

// BestSuccessor is the voter that this leader would hand over to: of those
// that support it now, are connected and may stand, the highest in rank; ""
// if there is none or this node does not lead.
func (m *Machine) BestSuccessor() NodeID {
	if m.state.Role != Leader {
		return ""
	}
	return m.best(func(int) bool { return true })
}

// successor is the voter that this leader names when it cedes: the target of its handover if that
// is still fit, otherwise the best; "" for none. In a pause only a target is named: §9.13.
func (m *Machine) successor() NodeID {
	if to := m.state.Leader.Handover.To; to != "" && m.Transferable(to) == nil {
		return to
	}
	if m.paused() {
		return ""
	}
	return m.BestSuccessor()
}

// maxFailed keeps the longest Takeover, 24h, doubled so often, within a Duration.
const maxFailed = 16

// considerHandover lets a leader look, once a period, whether another node should lead.
// The heartbeat that follows asks that node.
func (m *Machine) considerHandover() {
	s := &m.state
	l := s.Leader
	if m.paused() {
		return
	}
	if to := m.unableSuccessor(); to != "" {
		m.askTarget(to, handoverUnable)
		return
	}
	// §9.12: each attempt that failed doubles the time.
	wait := min(m.cfg.Takeover<<s.Takeover.Failed, maxTimer)
	if wait == 0 || s.Now < s.Takeover.At.Add(wait) || l.Handover != (Handover{}) {
		return
	}
	// §9.11: fitness counts from this leader's election, so that nodes that come and go do
	// not make leadership flap.
	own := saturate(s.Priority)
	to := m.best(func(voter int) bool {
		by := &s.By[voter]
		since := by.FitSince
		return by.Priority > own && since != 0 && s.Now >= since.Add(wait)
	})
	if to != "" {
		s.rare().Takeover.At = s.Now
		m.askTarget(to, handoverTakeover)
	}
}
