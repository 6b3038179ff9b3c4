package elector

import (
	"slices"
	"time"

	"github.com/bmqelect/bmqelect/elector/detector"
)

// Links hold what a node measures on the links from leaders to itself: §14.2. All its elections
// share them. Like a Machine they are pure, and not safe for concurrent use.
type Links struct {
	peers    []NodeID
	ordered  bool
	monitors []detector.Monitor // by peer
	heldAt   Time               // when the node noticed last that it was held up ...
	heldFor  time.Duration      // ... and for how long
}

// NewLinks returns links about which nothing is known yet: those from the configured voters, and
// later from whoever leads. Ordered says that no message overtakes another on them, as on TCP: see
// detector.Quality.
func NewLinks(voters []NodeID, ordered bool) *Links {
	l := &Links{ordered: ordered}
	for _, id := range voters {
		l.add(id)
	}
	return l
}

func (l *Links) add(peer NodeID) *detector.Monitor {
	l.peers = append(l.peers, peer)
	l.monitors = append(l.monitors, detector.Monitor{Ordered: l.ordered})
	return &l.monitors[len(l.monitors)-1]
}

// monitor returns the monitor of a peer; nil if there is none.
func (l *Links) monitor(peer NodeID) *detector.Monitor {
	if i := slices.Index(l.peers, peer); i >= 0 {
		return &l.monitors[i]
	}
	return nil
}

// Up notes a new link, with Machine.Step(LinkUp).
func (l *Links) Up(peer NodeID) {
	if m := l.monitor(peer); m != nil {
		m.LinkUp()
	}
}

// SetOrdered says whether no heartbeat from a peer overtakes another: with datagrams any may.
func (l *Links) SetOrdered(peer NodeID, ordered bool) {
	if m := l.monitor(peer); m != nil {
		m.Ordered = ordered
	}
}

// Received notes a message of an election that arrived at now. Only heartbeats say something.
func (l *Links) Received(now Time, group string, from NodeID, msg *Message) {
	if msg.Kind != LeaderHeartbeat || msg.Period <= 0 {
		return
	}
	m := l.monitor(from)
	if m == nil {
		m = l.add(from)
	}
	hb := msg.heartbeat()
	hb.Held = now <= l.heldAt.Add(min(l.heldFor, msg.Period))
	m.Observe(time.Duration(now), detector.Source{Group: group, Term: uint64(msg.Term)}, hb)
}

// HeldUp notes that the node was held up, with Machine.Step(HeldUp).
func (l *Links) HeldUp(now Time, late time.Duration) { l.heldAt, l.heldFor = now, late }

// RoundTrip notes that a message to a peer and its answer took d together.
func (l *Links) RoundTrip(peer NodeID, d time.Duration) {
	if m := l.monitor(peer); m != nil {
		m.RoundTrip(d)
	}
}

// tuneEvery is how often the estimates of a link are looked at.
const tuneEvery = time.Second

// Tune checks, about once a second, whether Config.QoS needs another period or detection time on
// the link from the leader than before. If it does, step the machine with the returned input. Call
// it after a step.
func (m *Machine) Tune(l *Links) (in Tuned, changed bool) {
	leader, q, now := m.state.Follower.Leader, m.quality, m.state.Now
	if leader == "" || q == nil || q.of == leader && now < q.tuneAt {
		return Tuned{}, false
	}
	if q.of != leader {
		q.of, q.tuning = leader, detector.Tuning{}
	}
	q.tuneAt = now.Add(tuneEvery)
	if monitor := l.monitor(leader); monitor != nil {
		q.tuning = monitor.Tune(q.tuning, m.cfg.QoS, m.cfg.Timing.Periods())
	}
	in = Tuned{Peer: leader, Period: q.tuning.Period, Detection: q.tuning.Detection}
	return in, in.Period != 0 && in != m.state.Tuned
}

// Quality returns, for the link from the leader that this node follows: what was measured there
// and what Config.QoS needs; the plan that results from the period that the leader announces; and
// an error that says why the plan is less than was asked, or nil. ok is false if the node follows
// nobody, or asks for no quality.
func (m *Machine) Quality() (t detector.Tuning, plan detector.Plan, err error, ok bool) {
	q, f := m.quality, m.state.Follower
	if f.Leader == "" || q == nil || q.of != f.Leader {
		return t, plan, nil, false
	}
	if now := (promised{q.tuning, f.Period}); q.promised != now {
		q.promised = now // to say what is possible instead takes long
		q.plan, q.unmet = q.tuning.Promise(m.cfg.QoS, m.cfg.Timing.Periods(), f.Period)
	}
	return q.tuning, q.plan, q.unmet, true
}

// promised are the inputs of Tuning.Promise.
type promised struct {
	detector.Tuning
	period time.Duration
}
