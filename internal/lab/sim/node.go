package sim

import (
	"math/rand/v2"
	"time"

	"github.com/bmqelect/bmqelect/elector"
)

// node is a member: its disk, and while it runs the process with its machine.
type node struct {
	NodeConfig
	id      elector.NodeID
	index   int
	entropy *rand.Rand
	links   []*link // one to every other node, in their order
	disk    disk
	boots   int // numbers this node's processes, over all its disks

	machine *elector.Machine // nil while no process runs
	clock   clock
	paused  bool
	leaving bool            // told to stop
	backlog []elector.Input // what waits in the sockets of a paused process
	wake    time.Duration   // when the machine wants to be ticked
	// wakeQueued is the earliest tick that is queued already. A wake that moved
	// to later is queued again only when that tick comes.
	wakeQueued time.Duration
	spins      int // steps in a row that left something due

	quality   *elector.Links // of the links to this process; nil if no quality is asked
	roundTrip time.Duration  // that the machine was told of

	lease      elector.Lease
	leaseUntil time.Duration // lease.End in simulated time

	work work
}

// disk is what outlives the process.
type disk struct {
	identity int // which disk it is: 0 for the first, then the one after the first wipe
	terms    elector.Terms
	unsynced []elector.Terms // asked for and not durable yet, oldest first
	writing  int             // how many of them the write under way covers
}

// link is the link to another node.
func (n *node) link(to *node) *link {
	if to.index > n.index {
		return n.links[to.index-1]
	}
	return n.links[to.index]
}

func (n *node) running() bool { return n.machine != nil }

// awake reports whether the process can do anything.
func (n *node) awake() bool { return n.running() && !n.paused }

// hear hands an input to a process: at once, or when it resumes.
func (s *Sim) hear(n *node, in elector.Input) {
	if n.paused {
		n.backlog = append(n.backlog, in)
		return
	}
	s.step(n, in)
}

// maxSpins is how many steps in a row may leave something due. A random wait of
// zero is due at once; a machine that goes on and on would stop the time.
const maxSpins = 100

// step lets the machine of an awake process act on an input, and carries out
// its effects in their order.
func (s *Sim) step(n *node, in elector.Input) {
	if s.promises != nil {
		s.promises.hears(s.now, n.id, in, s.promise(n))
	}
	now, before := n.clock.at(s.now), n.machine.State().Term
	s.estimate(n, now, in)
	eff := n.machine.Step(now, n.entropy.Uint64(), in)
	if term := n.machine.State().Term; term != before {
		s.observe(Event{Kind: EventTerm, Node: n.id, Term: term})
	}
	if eff.Persist != (elector.Terms{}) {
		s.persist(n, eff.Persist)
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
		s.send(n, &eff.Messages[i])
	}
	s.noteLease(n)
	if n.spins++; eff.Wake > now {
		n.spins = 0
	}
	if n.spins > maxSpins {
		s.check(violation("wedge", "%s asks for a tick at %s, where its clock is at %s already, "+
			"%d times in a row", n.id, eff.Wake, now, n.spins))
	}
	s.rearm(n, eff.Wake)
	peer := s.byName[eff.Anomaly.Peer]
	if eff.Anomaly.Kind == elector.AnomalyAbsurdTerm && peer != nil && peer != n {
		s.reset(n.link(peer)) // as the machine expects of its driver
	}
	s.tendWork(n, eff.StopWork)
	s.tune(n)
	if n.leaving && n.machine.State().Role == elector.Dormant {
		boot := n.boots
		s.queue.at(s.now, func() {
			if n.boots == boot {
				s.leave(n)
			}
		})
	}
}

// noteLease looks at the lease after a step: that is when one begins or grows.
func (s *Sim) noteLease(n *node) {
	lease := n.machine.Lease()
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

// rearm queues the tick that the machine asked for, unless an earlier one is queued
// already: that one will look again.
func (s *Sim) rearm(n *node, wake elector.Time) {
	if n.wake = max(n.clock.when(wake), s.now); n.wake < n.wakeQueued {
		s.queueTick(n)
	}
}

func (s *Sim) queueTick(n *node) {
	at, boot := n.wake, n.boots
	n.wakeQueued = at
	s.queue.at(at, func() {
		if n.boots != boot || !n.awake() || at != n.wakeQueued {
			return
		}
		if n.wake > s.now {
			s.queueTick(n) // it moved to later
			return
		}
		n.wakeQueued = forever
		s.step(n, elector.Tick{})
	})
}

// persist asks for terms to be written. What is asked for while a write runs is
// joined into one write after it.
func (s *Sim) persist(n *node, terms elector.Terms) {
	n.disk.unsynced = append(n.disk.unsynced, terms)
	if n.disk.writing == 0 {
		s.write(n)
	}
}

// write begins to write all that was asked for. It ends for a paused process too,
// which hears of it when it resumes.
func (s *Sim) write(n *node) {
	d, boot := &n.disk, n.boots
	d.writing = len(d.unsynced)
	terms := d.unsynced[d.writing-1]
	took := s.cfg.FsyncMin + s.upTo(s.cfg.FsyncMax-s.cfg.FsyncMin)
	s.queue.at(s.now+took, func() {
		if n.boots != boot || !n.running() {
			return
		}
		d.unsynced, d.writing = d.unsynced[d.writing:], 0
		if len(d.unsynced) > 0 {
			s.write(n)
		}
		s.durable(n, terms)
		s.hear(n, elector.Persisted{Term: terms.Reserved})
	})
}

func (s *Sim) durable(n *node, terms elector.Terms) {
	s.check(s.checker.Durable(n.id, terms))
	n.disk.terms = terms
	s.observe(Event{Kind: EventDurable, Node: n.id, Term: terms.Reserved})
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
		s.endWork(n, n.clock.when(n.machine.Handover().End))
	case w.going && !s.leads(n):
		s.endWork(n, w.over)
	case w.going:
		s.workUntil(n, n.leaseUntil)
	case n.Work.Does && s.leads(n) && w.over <= s.now && n.machine.Handover() == (elector.Handover{}):
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
