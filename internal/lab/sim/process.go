package sim

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/elector/detector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/ours"
)

// Unsynced says what a crash does to terms that were being written, as scenarios do.
type Unsynced string

const (
	UnsyncedByChance Unsynced = ""     // the seed decides how many of them the disk keeps
	UnsyncedLost     Unsynced = "lose" // none
	UnsyncedKept     Unsynced = "keep" // all: durable, though the process did not live to hear it
)

// Crash is how a process dies.
type Crash struct {
	Unsynced Unsynced
	// Silent crashes take the whole machine: no kernel is left to end its
	// connections, and peers only time out.
	Silent bool
}

// process returns a node that runs (or does not), as do needs it.
func (s *Sim) process(do string, id elector.NodeID, running bool) (*node, error) {
	n := s.byName[id]
	switch {
	case n == nil:
		return nil, fmt.Errorf("%s: no node is named %q", do, id)
	case n.running() == running:
		return n, nil
	case running:
		return n, fmt.Errorf("%s does not run", id)
	default:
		return n, fmt.Errorf("%s runs already", id)
	}
}

// Crash kills a running process: memory is lost, the disk stays. It returns an
// error if the node is unknown or does not run.
func (s *Sim) Crash(id elector.NodeID, how Crash) error {
	n, err := s.process("crash", id, true)
	if err != nil {
		return err
	}
	s.endProcessWork(n)
	s.settleWrites(n, how.Unsynced)
	s.observe(Event{Kind: EventCrashed, Node: id, Term: n.disk.terms().Entered})
	s.vanish(n, elector.EvidenceEOF, how.Silent)
	return s.err
}

// settleWrites decides what the disk keeps of the writes that were under way.
func (s *Sim) settleWrites(n *node, u Unsynced) {
	keep := len(n.disk.unsynced)
	switch u {
	case UnsyncedLost:
		keep = 0
	case UnsyncedByChance:
		keep = int(s.network.Uint64N(uint64(keep) + 1))
	}
	for _, u := range n.disk.unsynced[:keep] {
		s.durable(n, u.state)
	}
	n.disk.unsynced, n.disk.writing = nil, 0
}

// vanish ends a process. Unless it is silent, the peers hear how its connections
// ended after all that it had sent.
func (s *Sim) vanish(n *node, why elector.Evidence, silent bool) {
	n.machine, n.elector, n.view = nil, nil, algorithm.View{}
	n.paused, n.leaving, n.backlog, n.held = false, false, nil, nil
	n.lease, n.leaseUntil, n.roundTrip, n.quality = elector.Lease{}, longAgo, 0, nil
	s.spec.Gone(n.id)
	for _, l := range n.links {
		i := l.side(n)
		if l.ends[i].up && !silent {
			s.sendClose(l, 1-i, why)
		}
		l.ends[i] = end{}
		s.refresh(l)
	}
	n.replica.gone = silent
	s.settleStore()
}

// Restart starts a process on the node's disk. It returns an error if one runs.
func (s *Sim) Restart(id elector.NodeID) error {
	n, err := s.process("restart", id, false)
	if err != nil {
		return err
	}
	s.endProcessWork(n) // a data directory has one process at a time
	n.machine = s.newMachine(n)
	n.elector, _ = n.machine.(*ours.Machine)
	n.state, n.view = elector.State{}, algorithm.View{}
	n.boots++
	n.replica.gone = false
	s.settleStore()
	zero := elector.Time(time.Second) + elector.Time(s.network.Uint64N(uint64(1000*time.Hour)))
	n.clock = clock{boot: s.now, zero: zero, ppm: n.ClockRatePPM}
	n.wakeQueued = forever
	if n.elector != nil && n.Elector.QoS != (detector.QoS{}) {
		n.quality = elector.NewLinks(s.ids(), false)
	}
	if n.elector != nil {
		s.check(s.spec.Booted(id, n.disk.terms()))
	}
	s.observe(Event{Kind: EventStarted, Node: n.id, Term: n.disk.terms().Entered})
	s.step(n, algorithm.Start{Disk: n.disk.state, Clock: sharedZero.Add(s.now)})
	for _, l := range n.links {
		s.refresh(l)
	}
	return s.err
}

// Wipe loses the disk of a node that does not run: term and identity. What the node
// did before may then happen again; I1 is not guaranteed with it.
func (s *Sim) Wipe(id elector.NodeID) error {
	n, err := s.process("wipe", id, false)
	if err != nil {
		return err
	}
	n.disk = disk{identity: n.disk.identity + 1}
	s.spec.Wiped(id)
	s.observe(Event{Kind: EventWiped, Node: id})
	return nil
}

// Join lets a node that does not run know no voters from now on: it joins as an observer.
func (s *Sim) Join(id elector.NodeID) error {
	n, err := s.process("join", id, false)
	if err == nil {
		n.Elector.Voters, n.Elector.Quorum = nil, 0
	}
	return err
}

// emergencyStep is by how much an emergency raises the terms.
const emergencyStep = 1_000_000_000

// Declare is an emergency: a node that does not run learns that some voters are lost for good.
func (s *Sim) Declare(id elector.NodeID, lost []elector.NodeID) error {
	n, err := s.process("declare on", id, false)
	has, ok := ours.Disk{}, false
	if err == nil {
		has, ok = n.disk.state.(ours.Disk)
	}
	if !ok {
		return errors.Join(err, fmt.Errorf("%s cannot lose voters for good", s.cfg.Algorithm.Name))
	}
	floor := has.Terms.Reserved + emergencyStep
	has.Terms = elector.Terms{Entered: floor, Reserved: floor}
	for _, id := range lost {
		n.Elector.Lost = append(n.Elector.Lost, elector.Voter{Node: id},
			elector.Voter{Node: id, Identity: s.byName[id].identity()})
	}
	s.spec.Emergency(n.Elector.Lost...)
	n.disk.state = has
	n.Elector.Voters = slices.DeleteFunc(slices.Clone(n.Elector.Voters), func(id elector.NodeID) bool {
		return slices.Contains(lost, id)
	})
	return nil
}

// Pause stops a running process as SIGSTOP does: it hears nothing, sends nothing
// and keeps its memory, while its sockets fill and its disk goes on writing.
func (s *Sim) Pause(id elector.NodeID) error {
	n, err := s.process("pause", id, true)
	if err != nil {
		return err
	}
	n.paused = true
	s.observe(Event{Kind: EventPaused, Node: id})
	for _, l := range n.links {
		s.refresh(l)
	}
	return nil
}

// Resume lets a paused process go on, with what waits in its sockets. Whether it
// looks at the clock before or after that is up to the seed.
func (s *Sim) Resume(id elector.NodeID) error {
	n, err := s.process("resume", id, true)
	if err != nil {
		return err
	}
	if !n.paused {
		return fmt.Errorf("resume %s: it is not paused", id)
	}
	n.paused, n.wakeQueued = false, forever
	s.observe(Event{Kind: EventResumed, Node: id})
	if late := n.clock.at(s.now).Sub(n.clock.at(n.wake)); n.elector != nil && late > 0 {
		s.step(n, elector.HeldUp{For: late}) // as the driver of a node does
	}
	waiting, at := n.backlog, 0
	if !s.chance(million / 2) {
		at = len(waiting)
	}
	s.send(n, n.held)
	n.backlog, n.held = nil, nil
	for _, in := range slices.Insert(waiting, at, algorithm.Input(elector.Tick{})) {
		s.step(n, in)
	}
	for _, l := range n.links {
		s.probe(l, l.side(n))
		l.ends[l.side(n)].silent = false // its read deadlines begin again
		s.refresh(l)
	}
	return s.err
}

// Stop ends a running process gracefully: at once, or when a leader's guarded
// work has stopped. A paused one cannot stop.
func (s *Sim) Stop(id elector.NodeID) error { return s.stop(id, elector.Stop{}) }

func (s *Sim) stop(id elector.NodeID, how elector.Stop) error {
	n, err := s.process("stop", id, true)
	if err != nil {
		return err
	}
	if n.paused {
		return fmt.Errorf("stop %s: it is paused", id)
	}
	n.leaving = true
	s.step(n, how)
	s.leave(n)
	return s.err
}

// leave ends the process of a node that has to stop, once it does not take part any more.
func (s *Sim) leave(n *node) {
	if n.running() && n.machine.View().Role == elector.Dormant {
		s.settleWrites(n, UnsyncedKept)
		s.observe(Event{Kind: EventStopped, Node: n.id})
		s.vanish(n, elector.EvidenceGoodbye, false)
	}
}

// Transfer tells a node to hand its leadership over to another, or to the best
// follower if to is "". If it cannot, Transfer returns why and changes nothing.
func (s *Sim) Transfer(from, to elector.NodeID) error {
	n, err := s.process("transfer from", from, true)
	if err != nil {
		return err
	}
	if n.elector != nil {
		to = cmp.Or(to, n.elector.BestSuccessor())
		if err := n.elector.Transferable(to); err != nil {
			return fmt.Errorf("transfer from %s: %w", from, err)
		}
	}
	s.observe(Event{Kind: EventCommand, Node: from, Peer: to})
	s.hear(n, elector.Transfer{To: to})
	return s.err
}

// Resign tells a running node to step down, and not to stand for the given time.
func (s *Sim) Resign(id elector.NodeID, rest time.Duration) error {
	return s.command("resign", EventResign, id, elector.Resign{Rest: rest})
}

// SetFit lets the application of a running node say whether it can lead. A node
// that starts is fit.
func (s *Sim) SetFit(id elector.NodeID, fit bool) error {
	kind := EventUnfit
	if fit {
		kind = EventFit
	}
	return s.command("fitness of", kind, id, elector.Eligible{Able: fit})
}

// command hands a command to a running node.
func (s *Sim) command(do string, kind EventKind, id elector.NodeID, in elector.Input) error {
	n, err := s.process(do, id, true)
	if err != nil {
		return err
	}
	s.observe(Event{Kind: kind, Node: id})
	s.hear(n, in)
	return s.err
}
