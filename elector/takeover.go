package elector

import (
	"math"
	"time"

	"github.com/bmqelect/bmqelect/scouting"
)

// considerHandover lets a leader look, once a period, whether another node had
// better lead. The heartbeat that follows asks it.
func (m *Machine) considerHandover() {
	if to := m.unableSuccessor(); to != "" {
		m.handOverTo(to, HandoverUnable)
		return
	}
	if !m.takeoverDue() || m.state.Leader.Handover != (Handover{}) {
		return
	}
	if to := m.preferred(); to != "" {
		m.state.Takeover.At = m.state.Now
		m.handOverTo(to, HandoverTakeover)
	}
}

// takeoverDue reports whether the last attempt to give leadership to a preferred
// node is old enough for another.
func (m *Machine) takeoverDue() bool {
	return m.cfg.Takeover > 0 && m.state.Now >= m.state.Takeover.At.Add(m.takeoverWait())
}

// takeoverWait is how long a preferred node must be fit. Each attempt that failed
// doubles it: their number grows only with the logarithm of the time that the cause
// lasts, and once it has passed the next attempt comes within about as long again.
func (m *Machine) takeoverWait() time.Duration {
	return min(m.cfg.Takeover<<m.state.Takeover.Failed, maxTimer)
}

// takeoverMade notes that this node steps down for a takeover. It counts as failed
// until the target is heard to lead.
func (m *Machine) takeoverMade(to NodeID) {
	t := &m.state.Takeover
	t.To, t.Failed = to, min(t.Failed+1, maxFailed)
}

// takeoverSeen ends the count of failed attempts once the target of the last leads.
func (m *Machine) takeoverSeen(leader NodeID) {
	if t := &m.state.Takeover; t.To == leader {
		t.To, t.Failed = "", 0
	}
}

// maxFailed keeps the longest Takeover, 24h, doubled so often, within a Duration.
const maxFailed = 16

// preferred is the best voter of higher priority than this leader that was fit
// for as long as takeoverWait says; "" for none. Its fitness counts from this leader's
// election, so that nodes that come and go do not make leadership flap.
func (m *Machine) preferred() NodeID {
	own := saturate(m.cfg.Priority)
	return m.best(func(voter int) bool {
		l := &m.state.Leader
		since := l.FitSince[voter]
		return l.Priority[voter] > own && since != 0 && m.state.Now >= since.Add(m.takeoverWait())
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
// acks had stayed away for as long as the lease. An older build does not say what
// it reaches; that does not speak against it.
func (m *Machine) noteFit(voter int, msg *Message, lapsed bool) {
	l := &m.state.Leader
	l.Fit, l.Short = l.Fit.Without(voter), l.Short.Without(voter)
	short := msg.Reach != 0 && int(msg.Reach) < m.cfg.quorum
	if short {
		l.Short = l.Short.With(voter)
	}
	if msg.Candidate {
		l.Fit = l.Fit.With(voter)
	}
	switch {
	case !msg.Candidate || short:
		l.FitSince[voter] = 0
	case lapsed || l.FitSince[voter] == 0:
		l.FitSince[voter] = m.state.Now
	}
	l.Priority[voter] = saturate(msg.Priority)
}

// saturate bounds a priority to what the leader's state has room for.
func saturate(priority int) int32 { return int32(min(max(priority, math.MinInt32), math.MaxInt32)) }
