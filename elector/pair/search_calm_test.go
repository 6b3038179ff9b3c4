package pair_test

import "github.com/bmqelect/bmqelect/elector"

// calmFor is for how many ticks nothing goes wrong before the follower must follow who leads, and
// nobody else.
const calmFor = 14

// settles checks invariant (d) from a state: streams and datagrams arrive, heartbeats and beats are
// sent each period, and nobody gives up or stands any more.
func (w *world) settles() error {
	c := w.clone()
	c.calm, c.pending, c.revision = true, datagram{}, 0
	for i := range c.x.leaders {
		if l, k := &c.leaders[i], &c.links[i]; l.dead || k.broken || l.session == nil {
			if c.f.sessions[i] != nil {
				c.end(i)
			}
			if l.session = nil; !l.dead {
				c.connect(i)
			}
		}
	}
	for range calmFor {
		if err := c.period(); err != nil {
			return err
		}
	}
	for i := range c.x.leaders {
		l, s := &c.leaders[i], c.f.sessions[i]
		if l.dead {
			continue
		}
		here, there := s.follows.Term(group), l.session.leads.Term(group)
		// A join that was lost is not missed while the leader has no reason to send beats: then
		// heartbeats go on.
		if w.spent.loses[0] > 0 && there == 0 && here == l.term && l.lease > c.now {
			continue
		}
		if here != l.term || there != l.term || l.term != 0 && l.lease <= c.now {
			return violation("(d): %s leads in term %d, but is followed in term %d, and knows of %d",
				names[i], l.term, here, there)
		}
	}
	return nil
}

// period is one in which nothing goes wrong.
func (w *world) period() error {
	if err := w.drain(); err != nil {
		return err
	}
	for i := range w.x.leaders {
		w.tickLeader(i)
		l := &w.leaders[i]
		if l.dead {
			continue
		}
		if l.asked != 0 && l.term == 0 && w.now >= l.askedAt+lease {
			w.cede(i, true) // its election has failed
		}
		if l.asked != 0 && l.term != 0 {
			w.propose(i, l.asked)
		}
		follows := l.term != 0 && l.session.leads.Follows(group, l.term)
		if l.term != 0 && !follows && w.x.broken != neverSays {
			w.heartbeat(i)
		}
		w.beats, w.acks = nil, nil
		w.ring(i)
		for _, d := range w.beats {
			if err := w.hearBeat(d); err != nil {
				return err
			}
		}
		for _, d := range w.acks {
			if err := w.hearAck(d); err != nil {
				return err
			}
		}
	}
	if err := w.drain(); err != nil {
		return err
	}
	silence := elector.Time(config().Timing.Inactivity())
	if s := w.f.session; s != nil && w.f.carried && w.now > max(s.follows.Heard(), w.f.heard)+silence {
		if err := w.do(event{what: suspects, peer: s.peer}); err != nil {
			return err
		}
	}
	return w.do(event{what: passes})
}

// drain lets all arrive that is on the streams.
func (w *world) drain() error {
	for range 50 {
		moved := false
		for i := range w.x.leaders {
			if w.f.writing != (elector.Terms{}) {
				w.persist()
			}
			for what, waiting := range map[deed][]item{reads: w.links[i].down, isRead: w.links[i].up} {
				if len(waiting) == 0 || w.leaders[i].dead {
					continue
				}
				moved = true
				if err := w.do(event{what: what, peer: i}); err != nil {
					return err
				}
			}
		}
		if !moved {
			return nil
		}
	}
	return violation("(d): messages go back and forth without an end")
}
