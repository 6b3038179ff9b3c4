package sim

import (
	"math/rand/v2"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/lsn"
)

// node is a member: its disk, and while it runs the process with its machine.
type node struct {
	NodeConfig
	id      elector.NodeID
	index   int
	entropy *rand.Rand
	links   []*link // by the index of the peer; nil at its own
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

	lease      elector.Lease
	leaseUntil time.Duration // lease.End in simulated time

	work work
}

// disk is what outlives the process.
type disk struct {
	identity int // which disk it is: 0 for the first, then the one after the first wipe
	term     lsn.Term
	unsynced []lsn.Term // asked for and not durable yet, oldest first
	writing  int        // how many of them the write under way covers
}

func (n *node) running() bool { return n.machine != nil }

// awake reports whether the process can do anything.
func (n *node) awake() bool { return n.running() && !n.paused }

// boot starts a process on the node's disk.
func (s *Sim) boot(n *node) {
	s.endProcessWork(n)                   // a data directory has one process at a time
	n.machine, _ = elector.New(n.Elector) // was validated by New
	n.boots++
	zero := elector.Time(time.Second) + elector.Time(s.network.Uint64N(uint64(1000*time.Hour)))
	n.clock = clock{boot: s.now, zero: zero, ppm: n.ClockRatePPM}
	n.wakeQueued = forever
	s.check(s.checker.Booted(n.id, n.disk.term))
	s.observe(&Event{Kind: EventStarted, Node: n.id, Term: n.disk.term})
	s.step(n, elector.Start{Term: n.disk.term})
	s.refreshAll(n)
}

// hear hands an input to a process: at once, or when it resumes.
func (s *Sim) hear(n *node, in elector.Input) {
	if n.paused {
		n.backlog = append(n.backlog, in)
		return
	}
	s.step(n, in)
}

// step lets the machine of an awake process act on an input, and carries out
// its effects in their order.
func (s *Sim) step(n *node, in elector.Input) {
	s.stats.Steps++
	if s.promises != nil {
		s.promises.hears(s.now, n.id, in, s.promise(n))
	}
	now := n.clock.at(s.now)
	eff := n.machine.Step(now, n.entropy.Uint64(), in)
	if eff.Persist != 0 {
		s.persist(n, eff.Persist)
	}
	for i := range eff.Transitions {
		s.tell(n, eff.Transitions[i])
	}
	if eff.Anomaly != (elector.Anomaly{}) {
		s.stats.Anomalies++
		s.observe(&Event{Kind: EventAnomaly, Node: n.id, Peer: eff.Anomaly.Peer, Anomaly: eff.Anomaly})
	}
	for i := range eff.Messages {
		s.send(n, &eff.Messages[i])
	}
	s.noteLease(n)
	s.checkSpin(n, now, eff.Wake)
	s.rearm(n, eff.Wake)
	s.obeyAnomaly(n, eff.Anomaly)
	s.tendWork(n, eff.StopWork)
	if n.leaving && n.machine.State().Role == elector.Dormant {
		s.queue.push(item{at: s.now, handle: (*Sim).departed, node: n, boot: n.boots})
	}
}

func (s *Sim) tell(n *node, t elector.Transition) {
	s.stats.Transitions++
	s.observe(&Event{Kind: EventTransition, Node: n.id, Transition: t})
	s.check(s.checker.Transition(n.id, t))
	if t.To == elector.Leader && s.promises != nil {
		s.check(s.promises.elected(n.id, t.Term))
	}
}

// maxSpins is how many steps in a row may leave something due. A random wait of
// zero is due at once; a machine that goes on and on would stop the time.
const maxSpins = 100

func (s *Sim) checkSpin(n *node, now, wake elector.Time) {
	n.spins++
	if wake > now {
		n.spins = 0
	}
	if n.spins > maxSpins {
		s.check(violation("wedge", "%s asks for a tick at %s, where its clock is at %s already, %d times in a row",
			n.id, wake, now, n.spins))
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

// rearm queues the tick that the machine asked for.
func (s *Sim) rearm(n *node, wake elector.Time) {
	n.wake = max(n.clock.when(wake), s.now)
	if n.wake < n.wakeQueued {
		n.wakeQueued = n.wake
		s.queue.push(item{at: n.wake, handle: (*Sim).tick, node: n, boot: n.boots})
	}
}

func (s *Sim) tick(it *item) {
	n := it.node
	if n.boots != it.boot || !n.awake() || it.at != n.wakeQueued {
		return
	}
	n.wakeQueued = forever
	if n.wake <= s.now {
		s.step(n, elector.Tick{})
		return
	}
	n.wakeQueued = n.wake
	s.queue.push(item{at: n.wake, handle: (*Sim).tick, node: n, boot: n.boots})
}

// persist asks for a term to be written. What is asked for while a write runs is
// joined into one write after it.
func (s *Sim) persist(n *node, term lsn.Term) {
	n.disk.unsynced = append(n.disk.unsynced, term)
	if n.disk.writing == 0 {
		s.write(n)
	}
}

// write begins to write all that was asked for.
func (s *Sim) write(n *node) {
	d := &n.disk
	d.writing = len(d.unsynced)
	took := s.cfg.FsyncMin + s.upTo(s.cfg.FsyncMax-s.cfg.FsyncMin)
	s.queue.push(item{at: s.now + took, handle: (*Sim).persisted, node: n, boot: n.boots, term: d.unsynced[d.writing-1]})
}

// persisted ends a write. It ends for a paused process too, which hears of it
// when it resumes.
func (s *Sim) persisted(it *item) {
	n := it.node
	if n.boots != it.boot || !n.running() {
		return
	}
	n.disk.unsynced = n.disk.unsynced[n.disk.writing:]
	n.disk.writing = 0
	if len(n.disk.unsynced) > 0 {
		s.write(n)
	}
	s.durable(n, it.term)
	s.hear(n, elector.Persisted{Term: it.term})
}

func (s *Sim) durable(n *node, term lsn.Term) {
	s.check(s.checker.Durable(n.id, term))
	n.disk.term = term
	s.observe(&Event{Kind: EventDurable, Node: n.id, Term: term})
}

// obeyAnomaly does what the machine expects of its driver.
func (s *Sim) obeyAnomaly(n *node, a elector.Anomaly) {
	if peer, ok := s.byName[a.Peer]; ok && peer != n && a.Kind == elector.AnomalyAbsurdTerm {
		s.reset(n.links[peer.index])
	}
}
