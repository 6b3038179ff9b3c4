package sim

import (
	"time"

	"github.com/bmqelect/bmqelect/elector"
)

// send puts a message on the way to whom it is for, as far as connected.
func (s *Sim) send(n *node, e *elector.Envelope) {
	s.check(s.checker.Sent(n.id, e))
	if s.promises != nil {
		s.check(s.promises.sent(s.now, n.id, e))
	}
	if e.To != elector.AllMembers {
		if peer, ok := s.byName[e.To]; ok && peer != n {
			s.transmit(n, peer, &e.Message)
		}
		return
	}
	for _, peer := range s.nodes {
		if peer != n {
			s.transmit(n, peer, &e.Message)
		}
	}
}

// transmit sends one message over a connection, with the faults of the way.
func (s *Sim) transmit(from, to *node, m *elector.Message) {
	l := from.links[to.index]
	i := l.side(to)
	if !l.ends[1-i].up {
		return
	}
	s.stats.Sent++
	s.observe(&Event{Kind: EventSent, Node: from.id, Peer: to.id, Message: *m})
	d := &l.dirs[i]
	if d.cut || s.chance(d.LossPPM) {
		s.lost(from, to, m)
		return
	}
	at := s.arrival(d)
	it := item{
		at: at, handle: (*Sim).arrive, link: l, end: i, epoch: l.epoch, boot: from.boots, message: *m,
	}
	if s.chance(d.LatePPM) {
		it.at, it.late = at+s.upTo(d.LateMax), true
	}
	s.queue.push(it)
	if s.chance(d.DuplicatePPM) {
		it.at += s.upTo(d.ExtraMax)
		s.queue.push(it)
	}
}

// arrival is when a message that is sent now arrives: after those before it,
// unless it is overtaken.
func (s *Sim) arrival(d *direction) time.Duration {
	at := s.now + d.Delay + s.upTo(d.Jitter)
	if s.chance(d.ReorderPPM) {
		return at + s.upTo(d.ExtraMax)
	}
	d.last = max(at, d.last)
	return d.last
}

// arrive delivers a message if its connection still stands. A late one outlives
// its connection, but never comes before the first from the same process.
func (s *Sim) arrive(it *item) {
	l, i := it.link, it.end
	n, peer := l.nodes[i], l.nodes[1-i]
	connected := l.epoch == it.epoch && l.ends[i].up
	known := it.late && n.running() && l.ends[i].knownBoot >= it.boot
	if l.dirs[i].cut || !connected && !known {
		s.lost(peer, n, &it.message)
		return
	}
	s.deliver(n, peer.id, &it.message)
}

func (s *Sim) lost(from, to *node, m *elector.Message) {
	s.stats.Lost++
	s.observe(&Event{Kind: EventLost, Node: from.id, Peer: to.id, Message: *m})
}

func (s *Sim) deliver(n *node, from elector.NodeID, m *elector.Message) {
	s.stats.Delivered++
	s.observe(&Event{Kind: EventDelivered, Node: n.id, Peer: from, Message: *m})
	s.hear(n, elector.Received{From: from, Message: *m})
}
