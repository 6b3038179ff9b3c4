package sim

import (
	"fmt"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
)

// onWay does something to the link between two nodes, in the direction to the second, whose index
// it is given.
func (s *Sim) onWay(what string, from, to elector.NodeID, do func(l *link, i int)) error {
	a, b := s.byName[from], s.byName[to]
	if a == nil || b == nil || a == b {
		return fmt.Errorf("%s %s->%s: these are not two nodes", what, from, to)
	}
	l := a.link(b)
	do(l, l.side(b))
	return nil
}

// Cut makes one direction silent: packets vanish, those under way too (see transmit
// and armReadDeadline). Cutting what is cut changes nothing.
func (s *Sim) Cut(from, to elector.NodeID) error {
	return s.onWay("cut", from, to, func(l *link, i int) { s.setCut(l, i, true) })
}

// Heal ends a Cut of one direction. Connections that were given up meanwhile are
// made again within Config.Redial.
func (s *Sim) Heal(from, to elector.NodeID) error {
	return s.onWay("heal", from, to, func(l *link, i int) { s.setCut(l, i, false) })
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
	s.observe(Event{Kind: kind, Node: l.nodes[1-i].id, Peer: l.nodes[i].id})
	s.refresh(l)
	if l.nodes[1] != s.store.node {
		s.settleStore()
	}
}

// HealAll ends every cut.
func (s *Sim) HealAll() {
	for _, l := range s.links {
		if l.nodes[1] != s.store.node || s.cfg.Store.Apart {
			s.setCut(l, 0, false)
			s.setCut(l, 1, false)
		}
	}
}

// Reset ends the connection of two nodes at once, as when a NAT entry dies; what
// is under way vanishes. It is made again unless the link is cut.
func (s *Sim) Reset(a, b elector.NodeID) error {
	return s.onWay("reset", a, b, func(l *link, _ int) {
		s.observe(Event{Kind: EventReset, Node: a, Peer: b})
		s.reset(l)
	})
}

func (s *Sim) reset(l *link) {
	s.lose(l, 0, elector.EvidenceReset)
	s.lose(l, 1, elector.EvidenceReset)
	s.refresh(l)
}

// SetFaults replaces the faults of one direction, for what is sent from now on.
func (s *Sim) SetFaults(from, to elector.NodeID, f Faults) error {
	return s.onWay("faults", from, to, func(l *link, i int) {
		l.dirs[i].Faults = f.withDefaults()
		s.observe(Event{Kind: EventLinkFaults, Node: from, Peer: to, Detail: l.dirs[i].Faults})
		s.measure(l.nodes[0])
		s.measure(l.nodes[1])
	})
}

// send puts messages on the way to those of their receivers that are connected.
func (s *Sim) send(n *node, messages []algorithm.Envelope) {
	for i := range messages {
		e := &messages[i]
		in := algorithm.Input(algorithm.Received{ // all share it
			From: n.id, Identity: n.identity(), Message: e.Message,
		})
		if e.To != elector.AllMembers {
			if peer := s.byName[e.To]; peer != nil && peer != n {
				s.transmit(n, peer, in)
			}
			continue
		}
		for _, peer := range s.nodes {
			if peer != n && peer.id != algorithm.StoreNode {
				s.transmit(n, peer, in)
			}
		}
	}
}

// transmit sends one message over a connection, with the faults of the way. What is
// on a direction that is cut, when it is sent or when it arrives, is lost.
func (s *Sim) transmit(from, to *node, in algorithm.Input) {
	l := from.link(to)
	i := l.side(to)
	if !l.ends[1-i].up {
		return
	}
	s.sent++
	way := happening{node: from, boot: from.boots, link: l, end: i, epoch: l.epoch, in: in,
		number: s.sent}
	s.observeMessage(EventSent, from.id, to.id, &way)
	if from == s.store.node || to == s.store.node {
		s.carry(from, to, &way)
		return
	}
	d := &l.dirs[i]
	if d.cut || s.chance(d.LossPPM) {
		s.observeMessage(EventLost, from.id, to.id, &way)
		return
	}
	at := s.arrival(d)
	if way.late = s.chance(d.LatePPM); way.late {
		at += s.upTo(d.LateMax)
	}
	s.queue.add(at, way)
	if s.chance(d.DuplicatePPM) {
		s.queue.add(at+s.upTo(d.ExtraMax), way)
	}
}

func (s *Sim) observeMessage(kind EventKind, node, peer elector.NodeID, way *happening) {
	m := way.in.(algorithm.Received).Message
	s.observe(Event{Kind: kind, Node: node, Peer: peer, Message: m, Number: way.number})
}

// arrive delivers a message, unless it is lost on its way. A late one outlives its connection,
// but never comes before the first from the same process.
func (s *Sim) arrive(w *happening) {
	l, to := w.link, w.link.nodes[w.end]
	connected := l.epoch == w.epoch && l.ends[w.end].up
	known := w.late && to.running() && l.ends[w.end].knownBoot >= w.boot
	if l.dirs[w.end].cut || !connected && !known {
		s.observeMessage(EventLost, w.node.id, to.id, w)
		return
	}
	s.observeMessage(EventDelivered, to.id, w.node.id, w)
	s.hear(to, w.in)
}

// arrival is when a message that is sent now arrives: after those before it,
// unless it is overtaken.
func (s *Sim) arrival(d *direction) time.Duration {
	at := s.now + d.Delay + s.upTo(d.Jitter)
	if d.Tail > 0 {
		return at + time.Duration(s.network.ExpFloat64()*float64(d.Tail))
	}
	if s.chance(d.ReorderPPM) {
		return at + s.upTo(d.ExtraMax)
	}
	d.last = max(at, d.last)
	return d.last
}
