package sim

import (
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/elector/spec"
)

// What only package elector's machine has: reasons, promises, a lease, guarded work.

// noteElector looks at what a step of an elector did, before its messages leave.
func (s *Sim) noteElector(n *node) {
	eff := &n.elector.Effects
	state := n.elector.State()
	if term := state.Term; term != n.term {
		n.term = term
		s.observe(Event{Kind: EventTerm, Node: n.id, Term: term})
	}
	if err := spec.Consistent(&state); err != nil {
		s.check(violation("state", "%s: %v", n.id, err))
	}
	for _, t := range eff.Transitions {
		s.observe(Event{Kind: EventTransition, Node: n.id, Transition: t})
		s.check(s.checker.Transition(n.id, t))
		if t.To == elector.Leader && s.promises != nil {
			s.check(s.promises.elected(n.id, t.Term))
		}
	}
	if eff.Anomaly != (elector.Anomaly{}) {
		s.observe(Event{Kind: EventAnomaly, Node: n.id, Peer: eff.Anomaly.Peer, Anomaly: eff.Anomaly})
	}
	for i := range eff.Messages {
		if err := spec.True(&state, &eff.Messages[i]); err != nil {
			s.check(violation("scouting", "%s: %v", n.id, err))
		}
		s.check(s.checker.Sent(n.id, &eff.Messages[i]))
		if s.promises != nil {
			s.check(s.promises.sent(s.now, n.id, &eff.Messages[i]))
		}
	}
	if p := &state.Promise; s.promises != nil {
		s.check(s.promises.remembers(s.now, n.id, p.To, p.Term, n.clock.when(p.Until),
			n.clock.when(state.EmbargoEnd)))
	}
}

// noteLease looks at the lease after a step: that is when one begins or grows.
func (s *Sim) noteLease(n *node) {
	lease := n.elector.Lease()
	if lease == n.lease {
		return
	}
	n.lease, n.leaseUntil = lease, longAgo
	if lease != (elector.Lease{}) {
		n.leaseUntil = n.clock.when(lease.End)
	}
	s.check(s.checker.Lease(s.now, n.id, lease.Term, n.leaseUntil))
	if s.promises != nil {
		s.check(s.promises.backs(s.now, n.id, n.leaseUntil))
	}
}

// serveElector does what a step asked for beside sending.
func (s *Sim) serveElector(n *node) {
	anomaly, told := n.elector.Effects.Anomaly, n.elector.Effects.StopWork
	peer := s.byName[anomaly.Peer]
	if anomaly.Kind == elector.AnomalyAbsurdTerm && peer != nil && peer != n {
		s.reset(n.link(peer)) // as the machine expects of its driver
	}
	s.tendWork(n, told)
	s.tune(n)
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
		s.endWork(n, n.clock.when(n.elector.Handover().End))
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
	s.check(s.checker.Work(s.now, n.id, end))
}

// endProcessWork ends the work with the process that does it.
func (s *Sim) endProcessWork(n *node) {
	n.work.going = false
	s.workUntil(n, min(n.work.over, s.now))
}
