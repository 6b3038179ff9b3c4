package elector

import (
	"time"

	"github.com/bmqelect/bmqelect/elector/detector"
	"github.com/bmqelect/bmqelect/lsn"
)

// watch is the detector of one leadership, since each leadership counts its heartbeats anew. It is
// not part of the State, which has only its result, SilentAt.
type watch struct {
	leader NodeID
	term   lsn.Term
	detector.Detector
}

// quality is what a machine with Config.QoS knows of the link from the leader that it followed
// last.
type quality struct {
	of       NodeID // see Machine.Tune
	tuning   detector.Tuning
	tuneAt   Time
	promised promised // see Machine.Quality
	plan     detector.Plan
	unmet    error
}

// silentAt is when the leader that sent this heartbeat is given up if no other one comes: §7.6.
func (m *Machine) silentAt(from NodeID, msg *Message) Time {
	if m.watch.leader != from || m.watch.term != msg.Term {
		m.watch = m.cfg.newWatch(from, msg)
	}
	w := m.watch
	detection := m.detection(from, msg.Period)
	nfde, ok := w.Detector.(*detector.NFDE)
	if ok {
		nfde.Adjust(detection)
	}
	hb := msg.heartbeat()
	hb.Held = m.state.Now <= m.state.HeldUntil
	if !ok {
		// A leader that sends faster for others' sake is not given up sooner.
		hb.Period = max(hb.Period, m.cfg.Timing.HeartbeatBroadcast)
	}
	deadline := w.Observe(time.Duration(m.state.Now), hb)
	return m.soon(Time(deadline), detection)
}

// soon bounds the deadline of a detector. It must not be in the past, since 0 means no deadline.
// Nor must it come before the messages are read that waited while this node was held up: NFD-E
// would give the leader up at the first of them. And with NFD-E a leader whose clock is wrong must
// not be trusted for long.
func (m *Machine) soon(deadline Time, detection time.Duration) Time {
	now := m.state.Now
	if m.cfg.asksQuality() {
		deadline = min(deadline, now.Add(2*detection))
	}
	return max(deadline, now, m.state.HeldUntil)
}

// heartbeat is what detectors read of a heartbeat; an older build says 0 for its period.
func (m *Message) heartbeat() detector.Heartbeat {
	return detector.Heartbeat{
		Number: m.Sequence, Scheduled: time.Duration(m.SentAt.Add(-m.Late)),
		Period: m.Period,
	}
}

// newWatch returns the detector that the configuration selects. NFD-E needs a leader that says its
// period. The miss count learns nothing, so one serves for all.
func (c *resolved) newWatch(leader NodeID, msg *Message) *watch {
	if c.asksQuality() && msg.Period > 0 {
		return &watch{leader, msg.Term, detector.NewNFDE(c.QoS.Detect)}
	}
	if c.Phi == (detector.PhiConfig{}) {
		return &c.counts
	}
	phi, err := detector.NewPhi(c.Phi)
	if err != nil {
		panic(err) // New has validated it
	}
	return &watch{leader, msg.Term, phi}
}

// suspected is to be called when the leader is given up for its silence.
func (w *watch) suspected() {
	if nfde, ok := w.Detector.(*detector.NFDE); ok {
		nfde.Forget()
	}
}
