package sim

import (
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/ours"
)

// estimate lets a process whose election asks for a quality of service measure its links.
// Messages are lost, and delayed, each by itself, so the links do not count as ordered.
func (s *Sim) estimate(n *node, now elector.Time, in algorithm.Input) {
	if n.quality == nil {
		return
	}
	switch in := in.(type) {
	case elector.LinkUp:
		n.quality.Up(in.Peer)
	case algorithm.Received:
		m := in.Message.(ours.Message)
		n.quality.Received(now, "", in.From, &m.Message)
		if peer := s.byName[in.From]; peer != nil && peer != n { // as a ping would find it
			l := n.link(peer)
			n.quality.RoundTrip(in.From, l.dirs[0].mean()+l.dirs[1].mean())
		}
	}
}

// mean is the mean delay, except for late messages.
func (f *Faults) mean() time.Duration {
	extra := time.Duration(mulDiv(int64(f.ExtraMax/2), int64(f.ReorderPPM), million))
	return f.Delay + f.Jitter/2 + f.Tail + extra
}

// tune tells a machine what it needs of its leader, if that has changed.
func (s *Sim) tune(n *node) {
	if n.quality == nil || !n.awake() {
		return
	}
	if in, changed := n.elector.Tune(n.quality); changed {
		s.observe(Event{Kind: EventTuned, Node: n.id, Peer: in.Peer, Detail: in})
		s.step(n, in)
	}
}
