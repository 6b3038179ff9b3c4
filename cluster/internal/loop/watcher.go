package loop

import (
	"time"

	"github.com/bmqelect/bmqelect/cluster/internal/guarded"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/elector/detector"
	"github.com/bmqelect/bmqelect/elector/pair"
)

// watcher is the failure detector of one direction, for the elections of one class: §16.6. It is an
// observer of an election of which beats are the heartbeats, so a pair suspects its leader exactly
// when an election with heartbeats of its own would.
type watcher struct {
	s       *session
	class   *class
	machine *elector.Machine
	timer   *guarded.Timer[ringer]
	putOff  elector.Time // the deadline that was put off because the driver was held up
	hears   bool         // beats come
}

// watcher returns the session's watcher for a class.
func (s *session) watcher(d *Driver, c *class) *watcher {
	for _, w := range s.watchers {
		if w.class == c {
			return w
		}
	}
	machine, err := elector.New(elector.Config{Self: d.Node, Voters: []elector.NodeID{s.peer},
		Timing: c.Timing, QoS: c.QoS, Phi: c.Phi})
	if err != nil {
		panic(err) // the configuration of an open election is valid, and so is a part of it
	}
	w := &watcher{s: s, class: c, machine: machine}
	w.timer = &guarded.Timer[ringer]{Owner: w}
	w.step(d, d.Now(), elector.Start{})
	s.watchers = append(s.watchers, w)
	return w
}

// heartbeat is what a watcher makes of a beat. A session has one leadership.
func heartbeat(b pair.Beat) elector.Message {
	return elector.Message{Kind: elector.LeaderHeartbeat, Term: 1,
		Sequence: b.Sequence, SentAt: b.SentAt, Period: b.Period, Late: b.Late}
}

// noteQuality measures the link by a beat.
func (d *Driver) noteQuality(s *session, b pair.Beat, at elector.Time) {
	for _, w := range s.watchers {
		if w.class.QoS != (detector.QoS{}) {
			msg := heartbeat(b)
			d.quality.Received(at, "", s.peer, &msg)
			return
		}
	}
}

// heard takes a beat.
func (w *watcher) heard(d *Driver, b pair.Beat, at elector.Time) {
	w.step(d, at, elector.Received{From: w.s.peer, Message: heartbeat(b)})
	if in, changed := w.machine.Tune(d.quality); changed {
		w.step(d, at, in)
	}
}

// listenFirst puts the deadline off if the driver was held up, so that it reads the messages that
// wait before it judges: §7.12.
func (w *watcher) listenFirst(d *Driver, now elector.Time) {
	if late := now.Sub(w.timer.At); late >= lateFrom && w.timer.At != w.putOff {
		d.quality.HeldUp(now, late)
		w.step(d, now, elector.HeldUp{For: late})
		w.putOff = w.timer.At
	}
}

// ring looks whether the peer is silent for too long.
func (w *watcher) ring(d *Driver, _ elector.Time) { w.step(d, d.Now(), elector.Tick{}) }

func (w *watcher) usual() time.Duration { return w.class.Timing.HeartbeatBroadcast }

// step steps the detector, unless its class was forgotten a moment ago. If it suspects the peer, so
// do all elections that it watches for.
func (w *watcher) step(d *Driver, now elector.Time, in elector.Input) {
	if d.entered[w.class] == 0 {
		return
	}
	e := w.machine.Step(now, 0, in)
	d.alarms.Set(w.timer, e.Wake)
	for _, t := range e.Transitions {
		w.hears = t.Leader != ""
		if t.Reason == elector.LeaderNoHeartbeat {
			d.tellAll(func(d *Driver, g *group) {
				if g.session == w.s && g.class == w.class && g.carried {
					d.step(g, elector.Lose{Peer: w.s.peer})
				}
			})
		}
	}
}
