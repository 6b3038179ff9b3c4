package elector

import (
	"time"

	"github.com/bmqelect/bmqelect/elector/detector"
	"github.com/bmqelect/bmqelect/lsn"
)

// A watch is the detector of one leadership: each counts its heartbeats anew. It is not part
// of the State; there, what it says is SilentAt.
type watch struct {
	leader NodeID
	term   lsn.Term
	detector.Detector
}

// silentAt is when the leader that sent this heartbeat is given up, without another one: §7.6.
func (m *Machine) silentAt(from NodeID, msg *Message) Time {
	w := &m.watch
	if w.leader != from || w.term != msg.Term {
		*w = watch{from, msg.Term, m.cfg.newDetector()}
	}
	now := m.state.Now
	deadline := w.Observe(time.Duration(now), detector.Heartbeat{
		Number: msg.Sequence, Scheduled: time.Duration(msg.SentAt),
		Period: m.cfg.Timing.HeartbeatBroadcast,
	})
	return max(Time(deadline), now) // 0 would be no deadline at all
}

// newDetector returns the detector that the configuration selects.
func (c *resolved) newDetector() detector.Detector {
	if c.Phi == (detector.PhiConfig{}) {
		return detector.MissCount(c.Timing.HeartbeatMissCount)
	}
	phi, err := detector.NewPhi(c.Phi)
	if err != nil {
		panic(err) // New has validated it
	}
	return phi
}
