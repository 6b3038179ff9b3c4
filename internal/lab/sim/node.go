package sim

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/elector/spec"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/ours"
)

// node is a member: its disk, and while it runs the process with its machine.
type node struct {
	NodeConfig
	id      elector.NodeID
	index   int
	entropy *rand.Rand
	links   []*link // one to every other node, in their order
	disk    disk
	replica replica // of the store
	boots   int     // numbers this node's processes, over all its disks

	machine algorithm.Machine // nil while no process runs
	elector *ours.Machine     // the same, if it is that; nil if not
	view    algorithm.View    // of any other machine, after its last step
	clock   clock
	paused  bool
	leaving bool                 // told to stop
	backlog []algorithm.Input    // what waits in the sockets of a paused process
	held    []algorithm.Envelope // that a paused process sends when it resumes
	wake    time.Duration        // when the machine wants to be ticked
	// wakeQueued is the earliest tick that is queued already. A wake that moved
	// to later is queued again only when that tick comes.
	wakeQueued time.Duration
	spins      int // steps in a row that left something due

	quality   *elector.Links // of the links to this process; nil if no quality is asked
	roundTrip time.Duration  // the newest that the machine knows

	state      elector.State // of the elector, after its last step
	lease      elector.Lease
	leaseUntil time.Duration // lease.End in simulated time

	work work
}

// disk is what outlives the process.
type disk struct {
	identity int // which disk it is: 0 for the first, then the one after the first wipe
	state    algorithm.Disk
	unsynced []unsynced // asked for and not durable yet, oldest first
	writing  int        // how many of them the write under way covers
}

// unsynced is a state that is not durable yet, and the messages that wait for it.
type unsynced struct {
	state    algorithm.Disk
	messages []algorithm.Envelope
}

// terms are those on the disk of an elector; zero for any other.
func (d *disk) terms() elector.Terms {
	has, _ := d.state.(ours.Disk)
	return has.Terms
}

// identity is that of the disk that the node has now.
func (n *node) identity() elector.Identity {
	return elector.Identity{1, byte(n.index >> 8), byte(n.index), byte(n.disk.identity)}
}

// link is the link to another node.
func (n *node) link(to *node) *link {
	if to.index > n.index {
		return n.links[to.index-1]
	}
	return n.links[to.index]
}

// voters are those that count for the node.
func (n *node) voters() []elector.NodeID {
	if n.elector != nil {
		return n.elector.Electorate()
	}
	return n.Elector.Voters
}

// ends is the link to another node as this one sees it.
func (n *node) ends(to *node) *end {
	l := n.link(to)
	return &l.ends[l.side(n)]
}

func (n *node) running() bool { return n.machine != nil }

// awake reports whether the process can do anything.
func (n *node) awake() bool { return n.running() && !n.paused }

// hear hands an input to a process: at once, or when it resumes.
func (s *Sim) hear(n *node, in algorithm.Input) {
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
func (s *Sim) step(n *node, in algorithm.Input) {
	now := n.clock.at(s.now)
	s.estimate(n, now, in)
	eff := n.machine.Step(now, n.entropy.Uint64(), in)
	if eff.Persist != nil {
		n.disk.unsynced = append(n.disk.unsynced, unsynced{eff.Persist, slices.Clone(eff.Durable)})
		if n.disk.writing == 0 {
			s.write(n)
		}
	}
	if n.elector != nil {
		s.noteElector(n, in)
	} else {
		s.noteView(n, eff.Why)
	}
	s.send(n, eff.Messages)
	if eff.Persist == nil {
		s.send(n, eff.Durable)
	}
	if n.spins++; eff.Wake > now {
		n.spins = 0
	}
	if n.spins > maxSpins {
		s.check(spec.Broken("wedge", "%s asks for a tick at %s, where its clock is at %s already, "+
			"%d times in a row", n.id, eff.Wake, now, n.spins))
	}
	// A tick that is queued for an earlier time looks again.
	if n.wake = max(n.clock.When(eff.Wake), s.now); n.wake < n.wakeQueued {
		s.queueTick(n)
	}
	if n.elector != nil {
		s.serveElector(n)
	}
	if n.leaving && n.machine.View().Role == elector.Dormant {
		boot := n.boots
		s.queue.at(s.now, func() {
			if n.boots == boot {
				s.leave(n)
			}
		})
	}
}

// noteView looks at what a node believes after a step. Whoever observes the end of a leadership
// finds the lease that it had until then, as with an elector.
func (s *Sim) noteView(n *node, why string) {
	if leased, ok := n.machine.(algorithm.Leased); ok && s.cfg.Algorithm.Leased {
		defer func() { n.noteLease(leased.Lease()) }()
	}
	was, is := n.view, n.machine.View()
	if is == was || n.id == algorithm.StoreNode {
		return
	}
	n.view = is
	s.observe(Event{Kind: EventTransition, Node: n.id, Why: why, Transition: elector.Transition{
		From: was.Role, To: is.Role, Term: is.Term, Leader: is.Leader,
	}})
	if is.Role == elector.Leader && s.cfg.Algorithm.OneLeaderPerTerm {
		s.check(s.spec.Leads(n.id, is.Term))
	}
}

func (s *Sim) queueTick(n *node) {
	n.wakeQueued = n.wake
	s.queue.add(n.wake, happening{node: n, boot: n.boots})
}

// tick lets a process look at its clock, if the tick that comes is the one that it waits for.
func (s *Sim) tick(n *node, boot int) {
	switch {
	case n.boots != boot || !n.awake() || s.now != n.wakeQueued:
	case n.wake > s.now:
		s.queueTick(n) // it moved to later
	default:
		n.wakeQueued = forever
		s.step(n, elector.Tick{})
	}
}

// write begins to write everything that waits; what is asked for meanwhile is joined into one
// write after it. The write also ends while the process is paused; the process hears of that, and
// sends what waited for it, when it resumes.
func (s *Sim) write(n *node) {
	d, boot := &n.disk, n.boots
	d.writing = len(d.unsynced)
	state := d.unsynced[d.writing-1].state
	took := s.cfg.FsyncMin + s.upTo(s.cfg.FsyncMax-s.cfg.FsyncMin)
	s.queue.at(s.now+took, func() {
		if n.boots != boot || !n.running() {
			return
		}
		written := d.unsynced[:d.writing]
		d.unsynced, d.writing = d.unsynced[d.writing:], 0
		if len(d.unsynced) > 0 {
			s.write(n)
		}
		s.durable(n, state)
		for _, u := range written {
			if n.paused {
				n.held = append(n.held, u.messages...)
			} else {
				s.send(n, u.messages)
			}
		}
		disk, _ := state.(ours.Disk)
		s.hear(n, elector.Persisted{Term: disk.Terms.Reserved, Record: disk.Record.LSN})
	})
}

func (s *Sim) durable(n *node, state algorithm.Disk) {
	n.disk.state = state
	disk, ok := state.(ours.Disk)
	if ok {
		s.check(s.spec.Durable(n.id, disk.Terms))
	}
	s.observe(Event{Kind: EventDurable, Node: n.id, Term: disk.Terms.Reserved})
}
