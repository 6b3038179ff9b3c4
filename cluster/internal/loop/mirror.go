package loop

import (
	"context"
	"slices"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/elector/pair"
	"github.com/bmqelect/bmqelect/lsn"
)

// Acked takes the answer to a beat.
func (l *Loop) Acked(peer elector.NodeID, number uint64, a pair.Ack) {
	l.later(func(d *Driver) {
		if s := d.sessionOf(peer, number); s != nil {
			d.acked(s, a)
		}
	})
}

// acked counts the answer to a beat. A lease that has ended comes first, also one that others have
// seen end since the driver took the answer.
func (d *Driver) acked(s *session, a pair.Ack) {
	d.awaken()
	d.endLeases()
	before := s.leads.Counted()
	if !s.leads.Acked(a) {
		d.countAnomaly("beat-never-sent", s.peer)
		return
	}
	if s.leads.Answered() >= s.waitsFor && s.again.Set() {
		d.alarms.Set(s.again, elector.Never)
	}
	d.noteCounted(s, before)
	if s.wanted = a.Wanted; s.wanted != 0 && s.wanted < s.period {
		d.schedule(s, s.wanted)
	}
}

// noteCounted lets leases grow by acks that count since before.
func (d *Driver) noteCounted(s *session, before elector.Time) {
	if s.leads.Counted() == before {
		return
	}
	d.acks++
	for _, l := range d.leases {
		if slices.Contains(l.backers, s) {
			l.renew(d)
		}
	}
	if len(d.loud) > wide { // they have ticks of their own within a period
		return
	}
	now := d.Now()
	for _, g := range d.loud {
		if now < g.tick.At && s.leads.Support(g.Name, g.leadTerm) != 0 {
			d.ticks.Set(&g.tick, now)
		}
	}
}

// Changed takes changes of what the peer follows, and words of the peer that it does not lead. A
// frame may have ten thousand. It waits for the driver: a peer that sends very many holds up its
// own link, not the inbox of all.
func (l *Loop) Changed(peer elector.NodeID, number uint64, changes []pair.Change) {
	for some := range slices.Chunk(changes, batch) {
		_ = l.Do(context.Background(), func(d *Driver) error {
			s := d.sessionOf(peer, number)
			for i := 0; s != nil && !s.over && i < len(some); i++ {
				d.changed(s, some[i])
			}
			if s != nil && s.leads.Waits() {
				d.endLeases()
				before := s.leads.Counted()
				s.leads.Count()
				d.noteCounted(s, before)
			}
			return nil
		})
	}
}

// changed takes one change.
func (d *Driver) changed(s *session, c pair.Change) {
	switch c.What {
	case pair.Disown:
		d.disowned(s, c.Group, c.Term)
		return
	case pair.Begin:
		d.beginAnew(s)
		return
	case pair.Empty:
		if c.Revision > s.leads.Revision() { // else it is a repeated one
			s.anew = false
			d.emptied(s)
		}
	}
	g := d.groups[c.Group]
	d.endLease(g, d.Now()) // before acks count for it because it is followed
	if c.What == pair.Leave && g != nil {
		d.bringUpToDate(g) // acks that came until now have been shown
	}
	if d.crowds(s, c) || !s.leads.Read(c) {
		if !s.anew { // once, until it does
			s.anew = true
			d.Mesh.Change(s.peer, s.number, []pair.Change{{What: pair.Begin}})
		}
		return
	}
	switch c.What {
	case pair.Join, pair.Observe:
		d.checkLed(s, c.Group, c.Term)
		if g != nil && g.leadTerm == c.Term {
			g.acks = d.acks - 1 // acks of this session that came before count for it, too
			d.bringUpToDate(g)
			d.coverIfTold(g)
			d.noteAttempt(g, d.Now())
		}
		if p := d.beatPeriod(s); !s.beat.Set() || s.beat.At == elector.Never {
			d.schedule(s, p)
			s.ring(d, d.Now()) // the first beat lets elections be carried
		} else if p < s.period {
			d.schedule(s, p) // the lease may end before the next beat
		}
	case pair.Leave:
		d.uncover(c.Group, s)
	}
}

// mostUnknown is how many elections a mirror may have in addition to as many as this node has. The
// peer may follow one that was closed here a moment ago.
const mostUnknown = 1024

// crowds reports whether a change would make a mirror too large. It counts as lost then.
func (d *Driver) crowds(s *session, c pair.Change) bool {
	return (c.What == pair.Join || c.What == pair.Observe) && d.groups[c.Group] == nil &&
		s.leads.Len() >= len(d.groups)+mostUnknown
}

// emptied lets the leaders whom the peer followed send heartbeats again: at once, or, if there are
// very many, in batches. Until they do, the acks that it gave them count, and no later ones. To
// tell all elections costs too much for a few, which a peer may empty again and again.
func (d *Driver) emptied(s *session) {
	if n := s.leads.Len(); n <= 4*batch {
		s.leads.Look(n, func(name string, _ lsn.Term) { d.uncover(name, s) })
		return
	}
	leads := *s.leads
	before := &session{peer: s.peer, identity: s.identity, leads: &leads, over: true}
	for _, l := range d.leases {
		if i := slices.Index(l.backers, s); i >= 0 {
			l.backers[i] = before
		}
	}
	d.tellAll(func(d *Driver, g *group) {
		if leads.Follows(g.Name, g.leadTerm) {
			d.uncover(g.Name, before)
		}
	})
}

// uncover lets a leader send heartbeats again: the peer is not told by beats any more that it
// leads. Of one that backed the lease, no further ack counts.
func (d *Driver) uncover(name string, s *session) {
	g := d.groups[name]
	switch {
	case g == nil || g.leadTerm == 0:
	case g.lease != nil && !slices.Contains(g.lease.backers, s):
		d.linkUp(g, s.peer)
	default:
		d.step(g, elector.Covered{})
	}
}

// checkLed tells the peer if this node does not lead what the peer follows, in that term: §16.8.
func (d *Driver) checkLed(s *session, name string, term lsn.Term) {
	if g := d.groups[name]; g == nil || g.leadTerm != term {
		d.Mesh.Change(s.peer, s.number, []pair.Change{{What: pair.Disown, Group: name, Term: term}})
	}
}

// heartbeat sends a heartbeat that tells nothing new to the members to whom no beats say that this
// node leads. It reports whether there are none: the leader needs no heartbeats then.
func (d *Driver) heartbeat(g *group, m *elector.Message) (covered bool) {
	covered = true
	for peer := range d.up {
		if !d.sessions[peer].tells(g, m.Term) {
			covered = false
			d.Mesh.Send(peer, g.Name, *m)
		}
	}
	return covered
}

// tells reports whether beats of a session tell the peer that this node leads in term.
func (s *session) tells(g *group, term lsn.Term) bool {
	return s != nil && s.leads.Follows(g.Name, term)
}

// coverIfTold lets a leader be quiet as soon as beats tell all members that it leads.
func (d *Driver) coverIfTold(g *group) {
	for peer := range d.up {
		if !d.sessions[peer].tells(g, g.leadTerm) {
			return
		}
	}
	d.cover(g)
}

// cover lets a leader be quiet, unless a request waits for its steps.
func (d *Driver) cover(g *group) {
	if g.busy() {
		return
	}
	d.stepOnce(g, elector.Covered{All: true})
	g.quiet.Store(true)
	d.tellIssued(g) // before quiet was set
}

// busy reports whether a request waits for steps.
func (g *group) busy() bool {
	return len(g.writes)+len(g.changes)+len(g.confirms.waiting)+len(g.handovers) > 0
}

// noteLeads counts the leaderships of a class, and tells those who follow one that has ended:
// §16.8.
func (d *Driver) noteLeads(g *group, before lsn.Term) {
	if g.leadTerm == before {
		return
	}
	if before == 0 {
		d.led[g.class]++
	} else if g.leadTerm == 0 {
		if d.led[g.class]--; d.led[g.class] == 0 {
			delete(d.led, g.class)
		}
	}
	for _, s := range d.sessions {
		if before != 0 && s.leads.Follows(g.Name, before) {
			d.Mesh.Change(s.peer, s.number, []pair.Change{{What: pair.Disown, Group: g.Name, Term: before}})
		}
	}
}
