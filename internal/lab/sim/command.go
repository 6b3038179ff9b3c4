package sim

import (
	"fmt"
	"time"

	"github.com/bmqelect/bmqelect/elector"
)

// Stop ends a running process gracefully: at once, or when a leader's guarded
// work has stopped. A paused one cannot stop.
func (s *Sim) Stop(id elector.NodeID) error { return s.stop(id, elector.Stop{}) }

// StopAbruptly is Stop without waiting for guarded work, which goes on without
// the elector until it has stopped or its deadline ends it.
func (s *Sim) StopAbruptly(id elector.NodeID) error {
	return s.stop(id, elector.Stop{Abrupt: true})
}

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

// leave ends the process of a node that was stopped, once it takes part no more.
func (s *Sim) leave(n *node) {
	if n.running() && n.machine.State().Role == elector.Dormant {
		s.settleWrites(n, UnsyncedKept)
		s.observe(&Event{Kind: EventStopped, Node: n.id})
		s.vanish(n, elector.EvidenceGoodbye, false)
	}
}

// Transfer tells a node to hand its leadership over to another, or to the best
// follower if to is "". Why it cannot is returned, and changes nothing.
func (s *Sim) Transfer(from, to elector.NodeID) error {
	n, err := s.process("transfer from", from, true)
	if err != nil {
		return err
	}
	if to == "" {
		to = n.machine.BestSuccessor()
	}
	if err := n.machine.Transferable(to); err != nil {
		return fmt.Errorf("transfer from %s: %w", from, err)
	}
	s.observe(&Event{Kind: EventCommand, Node: from, Peer: to})
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
	s.observe(&Event{Kind: kind, Node: id})
	s.hear(n, in)
	return s.err
}
