package sim

import (
	"slices"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/elector/spec"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/ours"
)

// What only package elector's machine has: reasons, promises, a lease, guarded work.

// noteElector looks at what a step of an elector did, before its messages leave.
func (s *Sim) noteElector(n *node, in algorithm.Input) {
	eff := &n.elector.Effects
	term, accepted, shown := n.state.Term, n.state.Record.Accepted.LSN, n.state.Record.Shown.LSN
	if n.state = n.elector.State(); n.state.Term != term {
		s.observe(Event{Kind: EventTerm, Node: n.id, Term: n.state.Term})
	}
	if r := n.state.Record.Accepted; r.LSN != accepted {
		s.observe(Event{Kind: EventAccepted, Node: n.id, Detail: r})
	}
	if r := n.state.Record.Shown; r.LSN != shown {
		s.observe(Event{Kind: EventShown, Node: n.id, Detail: r})
	}
	for _, t := range eff.Transitions {
		s.observe(Event{Kind: EventTransition, Node: n.id, Transition: t})
	}
	if eff.Anomaly != (elector.Anomaly{}) {
		s.observe(Event{
			Kind: EventAnomaly, Node: n.id, Peer: eff.Anomaly.Peer, Detail: eff.Anomaly,
		})
	}
	n.noteLease(n.elector.Lease())
	s.check(s.spec.Step(&spec.Step{
		Now: s.now, Node: n.id, Identity: n.identity(), Clock: &n.clock, Timing: &n.Elector.Timing,
		Effects: eff, State: &n.state, Lease: n.lease,
	}, ours.Input(in)))
}

// noteLease notes what a leader's lease is after a step.
func (n *node) noteLease(lease elector.Lease) {
	if lease == n.lease {
		return
	}
	n.lease, n.leaseUntil = lease, longAgo
	if lease != (elector.Lease{}) {
		n.leaseUntil = n.clock.When(lease.End)
	}
}

// serveElector does what a step asked for beside sending.
func (s *Sim) serveElector(n *node) {
	anomaly, told := n.elector.Effects.Anomaly, n.elector.Effects.StopWork
	joined := slices.Clone(n.elector.Effects.Joined)
	peer := s.byName[anomaly.Peer]
	if anomaly.Kind == elector.AnomalyAbsurdTerm && peer != nil && peer != n {
		s.reset(n.link(peer)) // as the machine expects of its driver
	}
	s.tendWork(n, told)
	s.tune(n)
	for _, id := range joined {
		if peer := s.byName[id]; peer != nil && peer != n && n.awake() && n.ends(peer).up {
			s.step(n, elector.LinkUp{Peer: id})
		}
	}
}

// Work is guarded work that a node's application does whenever the node leads:
// work that no two nodes may do at the same time. It lasts until it has stopped,
// after the word to stop or after leadership was lost, but never beyond what it
// was given: its node's lease as it stood then.
type Work struct {
	Does  bool          // the application does such work
	Stops time.Duration // how long it takes to stop; only the lease's end stops it if that is sooner
}

// work is what a node's application is at.
type work struct {
	number uint64        // counts what was begun
	going  bool          // begun, and not about to stop
	over   time.Duration // when what was begun last has ended, at the latest
}

// tendWork lets the application do its work after a step. told says that the
// step told it to stop.
func (s *Sim) tendWork(n *node, told bool) {
	w := &n.work
	switch {
	case w.going && told:
		s.observe(Event{Kind: EventWorkTold, Node: n.id})
		s.endWork(n, n.clock.When(n.elector.Handover().End))
	case w.going && !s.leads(n):
		s.endWork(n, w.over)
	case w.going:
		s.workUntil(n, n.leaseUntil)
	case n.Work.Does && s.leads(n) && w.over <= s.now && n.elector.Handover() == (elector.Handover{}):
		w.number++
		w.going = true
		s.observe(Event{Kind: EventWork, Node: n.id})
		s.workUntil(n, n.leaseUntil)
		s.step(n, elector.Guard{Held: true})
	}
}

// endWork lets work stop in its time, and at the deadline at the latest. The
// application says so, unless it is at something else by then.
func (s *Sim) endWork(n *node, deadline time.Duration) {
	n.work.going = false
	stopped, boot, number := s.now+n.Work.Stops, n.boots, n.work.number
	s.workUntil(n, min(stopped, deadline))
	s.queue.at(stopped, func() {
		if n.boots == boot && n.running() && n.work.number == number {
			s.observe(Event{Kind: EventWorkStopped, Node: n.id})
			s.hear(n, elector.Guard{})
		}
	})
}

// workUntil notes when the work ends, at the latest.
func (s *Sim) workUntil(n *node, end time.Duration) {
	n.work.over = end
	s.check(s.spec.Work(s.now, n.id, end))
}

// endProcessWork ends the work with the process that does it.
func (s *Sim) endProcessWork(n *node) {
	n.work.going = false
	s.workUntil(n, min(n.work.over, s.now))
}
