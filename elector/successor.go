package elector

import (
	"errors"
	"fmt"
	"math"
	"time"

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
		return fmt.Errorf("cannot hand over to %q: not one of the voters %q", to, m.cfg.voters)
	}
	if err := m.ineligible(voter); err != nil {
		return fmt.Errorf("cannot hand over to %q: %w", to, err)
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

// ineligible says what keeps a voter from being this leader's successor; nil if it is
// fit: §9.5.
func (m *Machine) ineligible(voter int) error {
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

// noteFitness notes what an ack says of the voter that sent it. lapsed means that its
// acks had stayed away for as long as the lease.
func (m *Machine) noteFitness(voter int, msg *Message, lapsed bool) {
	l := &m.state.Leader
	l.Fit, l.Short = l.Fit.Without(voter), l.Short.Without(voter)
	// An older build does not say what it reaches; that does not count against it.
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

// best is the highest in rank of the voters that are fit and among those asked
// for; "" if there is none. §9.6
func (m *Machine) best(among func(voter int) bool) NodeID {
	var best scouting.Rank
	for i, id := range m.cfg.voters {
		r := scouting.Rank{Priority: int(m.state.Leader.Priority[i]), Node: id}
		if m.ineligible(i) == nil && among(i) && (best.Node == "" || r.Compare(best) > 0) {
			best = r
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

// successor is the voter that this leader names when it cedes: the target of its
// handover if that is still fit, otherwise the best; "" for nobody.
func (m *Machine) successor() NodeID {
	if to := m.state.Leader.Handover.To; to != "" && m.Transferable(to) == nil {
		return to
	}
	return m.BestSuccessor()
}

// eligible notes whether the application can lead here: §9.9.
func (m *Machine) eligible(able bool) {
	s := &m.state
	if s.Unable == !able {
		return
	}
	s.Unable = !able
	if able {
		m.ableAgain()
		return
	}
	m.withdraw()
	if to := m.unableSuccessor(); to != "" {
		m.askTarget(to, handoverUnable)
		m.heartbeat(to)
	}
}

// unableSuccessor is to whom a leader whose application cannot lead hands over; "" for
// nobody. Without a successor it leads on: a cession would help nobody.
func (m *Machine) unableSuccessor() NodeID {
	if m.state.Role == Leader && m.state.Unable && m.state.Leader.Handover.Cause < handoverUnable {
		return m.BestSuccessor()
	}
	return ""
}

// withdraw ends what this node undertook to be elected.
func (m *Machine) withdraw() {
	switch m.state.Role {
	case Follower:
		m.closeRound()
	case Candidate:
		m.cede("")
		m.become(Follower, Resigned, "")
	}
}

// ableAgain lets a node stand that did not, and keeps a leader that was about to
// hand over because it could not lead.
func (m *Machine) ableAgain() {
	s := &m.state
	f, h := &s.Follower, &s.Leader.Handover
	if !m.mayStand() {
		return
	}
	idle := f.Leader == "" && f.Tentative == "" && f.StandAt == 0 && !f.Round.IsOpen()
	switch {
	case s.Role == Follower && idle:
		m.backOff()
	case s.Role == Leader && h.Cause == handoverUnable && !h.Stopping:
		*h = Handover{}
	}
}

// resign steps down, and rests: §9.10.
func (m *Machine) resign(rest time.Duration) {
	s := &m.state
	rest = min(max(rest, 0), maxTimer)
	if s.Role == Dormant || s.Role != Leader && rest == 0 {
		return
	}
	s.RestEnd = 0
	if rest > 0 {
		s.RestEnd = s.Now.Add(rest)
	}
	m.withdraw()
	if s.Role == Leader && m.mayReplace(handoverResign) {
		m.startHandover(handoverResign)
	}
}

// considerHandover lets a leader look, once a period, whether another node should lead.
// The heartbeat that follows asks that node.
func (m *Machine) considerHandover() {
	s := &m.state
	if to := m.unableSuccessor(); to != "" {
		m.askTarget(to, handoverUnable)
		return
	}
	if m.cfg.Takeover == 0 || s.Leader.Handover != (Handover{}) {
		return
	}
	wait := m.takeoverWait()
	if s.Now < s.Takeover.At.Add(wait) {
		return
	}
	if to := m.preferred(wait); to != "" {
		s.Takeover.At = s.Now
		m.askTarget(to, handoverTakeover)
	}
}

// preferred is the best voter of higher priority than this leader that was fit without a
// break for the given time; "" for none: §9.11. Its fitness counts from this leader's
// election, so that nodes that come and go do not make leadership flap.
func (m *Machine) preferred(wait time.Duration) NodeID {
	own := saturate(m.cfg.Priority)
	return m.best(func(voter int) bool {
		l := &m.state.Leader
		since := l.FitSince[voter]
		return l.Priority[voter] > own && since != 0 && m.state.Now >= since.Add(wait)
	})
}

// maxFailed keeps the longest Takeover, 24h, doubled so often, within a Duration.
const maxFailed = 16

// takeoverWait is how long a preferred node must be fit. Each attempt that failed
// doubles it: §9.12.
func (m *Machine) takeoverWait() time.Duration {
	return min(m.cfg.Takeover<<m.state.Takeover.Failed, maxTimer)
}
