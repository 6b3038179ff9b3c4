package elector

import (
	"math"

	"github.com/bmqelect/bmqelect/scouting"
)

// considerHandover lets a leader look, once a period, whether another node had
// better lead. The heartbeat that follows asks it.
func (m *Machine) considerHandover() {
	if to := m.unableSuccessor(); to != "" {
		m.handOverTo(to, HandoverUnable)
		return
	}
	l := &m.state.Leader
	if !m.takeoverDue() || l.Handover != (Handover{}) {
		return
	}
	if to := m.preferred(); to != "" {
		l.TakeoverAt = m.state.Now
		m.handOverTo(to, HandoverTakeover)
	}
}

// takeoverDue reports whether the last attempt to give leadership to a preferred
// node is old enough for another.
func (m *Machine) takeoverDue() bool {
	wait := m.cfg.Takeover
	return wait > 0 && m.state.Now >= m.state.Leader.TakeoverAt.Add(wait)
}

// preferred is the best voter of higher priority than this leader that was fit
// for as long as Takeover says; "" for none. Its fitness counts from this leader's
// election, so that nodes that come and go do not make leadership flap.
func (m *Machine) preferred() NodeID {
	own := saturate(m.cfg.Priority)
	return m.best(func(voter int) bool {
		l := &m.state.Leader
		since := l.FitSince[voter]
		return l.Priority[voter] > own && since != 0 && m.state.Now >= since.Add(m.cfg.Takeover)
	})
}

// best is the highest in rank of the voters that are fit and among those asked
// for; "" if there is none.
func (m *Machine) best(among func(voter int) bool) NodeID {
	var best scouting.Rank
	for i, id := range m.cfg.voters {
		r := scouting.Rank{Priority: int(m.state.Leader.Priority[i]), Node: id}
		if m.unfit(i) == nil && among(i) && (best.Node == "" || r.Compare(best) > 0) {
			best = r
		}
	}
	return best.Node
}

// noteFit notes what an ack says of the voter that sent it. lapsed means that its
// acks had stayed away for as long as the lease.
func (m *Machine) noteFit(voter int, msg *Message, lapsed bool) {
	l := &m.state.Leader
	if !msg.Candidate || lapsed {
		l.FitSince[voter] = 0
	}
	l.Fit = l.Fit.Without(voter)
	if msg.Candidate {
		l.Fit = l.Fit.With(voter)
		if l.FitSince[voter] == 0 {
			l.FitSince[voter] = m.state.Now
		}
	}
	l.Priority[voter] = saturate(msg.Priority)
}

// saturate bounds a priority to what the leader's state has room for.
func saturate(priority int) int32 { return int32(min(max(priority, math.MinInt32), math.MaxInt32)) }
