package sim

import (
	"fmt"
	"time"

	"github.com/bmqelect/bmqelect/elector"
)

// pair returns the link between two nodes and the index of the second.
func (s *Sim) pair(do string, from, to elector.NodeID) (*link, int, error) {
	a, err := s.find(from)
	if err != nil {
		return nil, 0, fmt.Errorf("%s %s->%s: %w", do, from, to, err)
	}
	b, err := s.find(to)
	if err != nil {
		return nil, 0, fmt.Errorf("%s %s->%s: %w", do, from, to, err)
	}
	if a == b {
		return nil, 0, fmt.Errorf("%s %s->%s: a node has no link to itself", do, from, to)
	}
	l := a.links[b.index]
	return l, l.side(b), nil
}

// Cut makes one direction silent: packets vanish, those under way too. Cutting
// what is cut changes nothing.
func (s *Sim) Cut(from, to elector.NodeID) error {
	l, i, err := s.pair("cut", from, to)
	if err == nil {
		s.setCut(l, i, true)
	}
	return err
}

// Heal ends a Cut of one direction. Connections that were given up meanwhile are
// made again within Config.Redial.
func (s *Sim) Heal(from, to elector.NodeID) error {
	l, i, err := s.pair("heal", from, to)
	if err == nil {
		s.setCut(l, i, false)
	}
	return err
}

func (s *Sim) setCut(l *link, i int, cut bool) {
	if l.dirs[i].cut == cut {
		return
	}
	l.dirs[i].cut = cut
	kind := EventHealed
	if cut {
		kind = EventCut
	}
	s.observe(&Event{Kind: kind, Node: l.nodes[1-i].id, Peer: l.nodes[i].id})
	s.refresh(l)
}

// HealAll ends every cut.
func (s *Sim) HealAll() {
	for _, l := range s.links {
		s.setCut(l, 0, false)
		s.setCut(l, 1, false)
	}
}

// Isolate cuts all links of a node, both ways.
func (s *Sim) Isolate(id elector.NodeID) error { return s.setNode("isolate", id, true) }

// HealNode ends the cuts of all links of a node.
func (s *Sim) HealNode(id elector.NodeID) error { return s.setNode("heal", id, false) }

func (s *Sim) setNode(do string, id elector.NodeID, cut bool) error {
	n, err := s.find(id)
	if err != nil {
		return fmt.Errorf("%s: %w", do, err)
	}
	for _, l := range n.links {
		if l != nil {
			s.setCut(l, 0, cut)
			s.setCut(l, 1, cut)
		}
	}
	return nil
}

// Partition cuts every link between nodes that are not in the same group, and
// heals the others. Nodes in no group are alone.
func (s *Sim) Partition(groups ...[]elector.NodeID) error {
	of := make([]int, len(s.nodes)) // by node: the number of its group
	for i := range of {
		of[i] = -1 - i
	}
	for g, ids := range groups {
		for _, id := range ids {
			n, err := s.find(id)
			if err != nil {
				return fmt.Errorf("partition: %w", err)
			}
			of[n.index] = g
		}
	}
	for _, l := range s.links {
		apart := of[l.nodes[0].index] != of[l.nodes[1].index]
		s.setCut(l, 0, apart)
		s.setCut(l, 1, apart)
	}
	return nil
}

// Reset ends the connection of two nodes at once, as when a NAT entry dies; what
// is under way vanishes. It is made again unless the link is cut.
func (s *Sim) Reset(a, b elector.NodeID) error {
	l, _, err := s.pair("reset", a, b)
	if err == nil {
		s.observe(&Event{Kind: EventReset, Node: a, Peer: b})
		s.reset(l)
	}
	return err
}

func (s *Sim) reset(l *link) {
	s.lose(l, 0, elector.EvidenceReset)
	s.lose(l, 1, elector.EvidenceReset)
	s.refresh(l)
}

// SetFaults replaces the faults of one direction, for what is sent from now on.
func (s *Sim) SetFaults(from, to elector.NodeID, f Faults) error {
	l, i, err := s.pair("faults", from, to)
	if err != nil {
		return err
	}
	if err := f.Validate(); err != nil {
		return fmt.Errorf("faults %s->%s: %w", from, to, err)
	}
	l.dirs[i].Faults = f.withDefaults()
	s.observe(&Event{Kind: EventLinkFaults, Node: from, Peer: to, Faults: l.dirs[i].Faults})
	return nil
}

// SetFsync replaces the bounds of how long a write takes, for writes that begin
// from now on.
func (s *Sim) SetFsync(least, most time.Duration) { s.cfg.FsyncMin, s.cfg.FsyncMax = least, most }
