package loop

import (
	"time"

	"github.com/bmqelect/bmqelect/cluster/internal/guarded"
	"github.com/bmqelect/bmqelect/cluster/internal/testhook"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/elector/pair"
	"github.com/bmqelect/bmqelect/lsn"
	"github.com/bmqelect/bmqelect/netmesh"
)

// session is a link to a process whose build knows pairs: both directions of its beats.
type session struct {
	peer     elector.NodeID
	identity elector.Identity // of the peer's data directory
	number   uint64
	follows  *pair.Follower // what is followed here; the peer leads it
	watchers []*watcher     // of the peer, one for each class of elections that are followed
	leads    *pair.Leader   // what the peer follows; this node leads it
	beat     *guarded.Timer[ringer]
	last     pair.Beat              // the newest to the peer
	again    *guarded.Timer[ringer] // when that is repeated ...
	waitsFor elector.Time           // ... because one that was sent then was not answered
	period   time.Duration          // of the beats to the peer
	wanted   time.Duration          // the longest that the peer needs; 0 for any
	slowFrom elector.Time           // since when a longer period would do; 0: it would not
	anew     bool                   // the peer was told to begin anew, and has not yet
	emptied  elector.Time           // when the followed set was emptied
	empty    bool                   // it is to be emptied with the next beat
	over     bool                   // nothing of it counts any more, except what was promised
}

// ringer is what a timer is for: a session, a watcher or a lease.
type ringer interface {
	// ring acts on the timer, which was due at the given time, and sets it anew.
	ring(d *Driver, due elector.Time)
	usual() time.Duration // the usual period of heartbeats
}

// openSession begins the session of a new link, in place of the one before.
func (d *Driver) openSession(peer *netmesh.PeerInfo) {
	d.closeSession(peer.Node)
	if peer.Session == 0 {
		return
	}
	s := &session{
		peer: peer.Node, identity: elector.Identity(peer.Identity), number: peer.Session,
		follows: pair.NewFollower(), leads: pair.NewLeader(),
	}
	s.beat = &guarded.Timer[ringer]{Owner: s}
	s.again = &guarded.Timer[ringer]{Owner: again{s}}
	d.sessions[peer.Node] = s
}

// closeSession ends the session with a peer. Nothing of it that still comes counts. Each election
// writes down what the pair has promised for it before its next step.
func (d *Driver) closeSession(peer elector.NodeID) {
	d.greetings.drop(peer)
	s := d.sessions[peer]
	if s == nil {
		return
	}
	delete(d.sessions, peer)
	s.over = true
	d.alarms.Drop(s.beat)
	d.alarms.Drop(s.again)
	for _, w := range s.watchers {
		d.alarms.Drop(w.timer)
	}
}

// sessionOf returns the session with a peer that has this number; nil if it is not the present one.
func (d *Driver) sessionOf(peer elector.NodeID, number uint64) *session {
	if s := d.sessions[peer]; s != nil && s.number == number {
		return s
	}
	return nil
}

// owed is the next input that a machine must have before any other, because of beats that came or
// were answered since its last step.
func (d *Driver) owed(g *group) (elector.Input, bool) {
	if s := g.session; s != nil && g.carried && s.follows.Heard() > g.heard {
		g.heard = s.follows.Heard()
		return elector.Carry{Peer: s.peer, Term: g.pairTerm, At: g.heard}, true
	}
	if g.leadTerm == 0 || g.acks == d.acks {
		return nil, false
	}
	g.acks = d.acks
	if now := d.common.Now(); g.LeaseEnd() <= now { // others may have seen the end
		d.awake = now
		return nil, false
	}
	d.backing = d.backing[:0]
	for _, s := range d.sessions {
		d.addBacking(g, s)
	}
	if g.lease != nil { // also by sessions that have ended since
		for _, s := range g.lease.backers {
			if s.over {
				d.addBacking(g, s)
			}
		}
	}
	return elector.Backed{By: d.backing}, len(d.backing) > 0
}

// addBacking adds what a session has acknowledged for a leader to the backing.
func (d *Driver) addBacking(g *group, s *session) {
	if at := s.leads.Support(g.Name, g.leadTerm); at != 0 {
		d.backing = append(d.backing, elector.Backing{Peer: s.peer, Identity: s.identity, SentAt: at})
	}
}

// pair keeps an election in the followed set of its leader's session, or out of it, after a step:
// §16.1, §16.2. What the pair promised until now is written down by then: see owed.
func (d *Driver) pair(g *group) {
	p, fresh := g.machine.Pairing()
	old := g.session
	if old == nil && !fresh || old != nil && !old.over && p.Leader == old.peer &&
		p.Term == g.pairTerm && p.Observes == g.observes {
		return
	}
	var next *session
	if fresh {
		next = d.sessions[p.Leader]
	}
	if old != nil && old != next {
		d.leaveSet(old, g.Name)
	}
	g.session, g.pairTerm, g.observes, g.carried = next, p.Term, p.Observes, false
	if next == nil {
		if old != nil && !old.over && g.machine.Leader() == old.peer { // beats speak for it no more
			d.stepOnce(g, elector.LinkUp{Peer: old.peer})
		}
		return
	}
	if c, changed := next.follows.Join(g.Name, p.Term, p.Observes); changed {
		d.Mesh.Change(next.peer, next.number, []pair.Change{c})
	}
	if next.watcher(d, g.class).hears { // else the machine watches the leader until beats come
		g.carried, g.heard = true, 0
	}
}

// leaveSet takes an election out of the followed set, if it is there.
func (d *Driver) leaveSet(s *session, name string) {
	if c, changed := s.follows.Leave(name); changed && !s.over {
		d.Mesh.Change(s.peer, s.number, []pair.Change{c})
	}
}

// Beaten takes a beat that came a while ago; it may be a copy, or an old one.
func (l *Loop) Beaten(peer elector.NodeID, number uint64, b pair.Beat, age time.Duration) {
	at := l.Now().Add(-age)
	l.later(func(d *Driver) {
		if s := d.sessionOf(peer, number); s != nil {
			d.beaten(s, b, at)
		}
	})
}

// beaten promises all that is followed, then answers: §16.3.
func (d *Driver) beaten(s *session, b pair.Beat, at elector.Time) {
	differs := s.follows.Differs(b)
	if differs {
		d.countAnomaly("beat-differs", s.peer)
	}
	if differs || s.empty {
		d.beginAnew(s)
		return
	}
	now := d.Now()
	for _, w := range s.watchers {
		if s.follows.Unread(now, b) > max(w.class.Timing.Inactivity(), 2*b.Period) {
			d.beginAnew(s)
			break
		}
	}
	a, fresh := s.follows.Beat(now, b) // its revision is that of the set that it promises
	if !fresh {
		return
	}
	d.noteQuality(s, b, at)
	began := false
	for _, w := range s.watchers {
		heard := w.hears
		w.heard(d, b, at)
		began = began || w.hears && !heard
		if wanted := w.machine.Wanted(); wanted != 0 && (a.Wanted == 0 || wanted < a.Wanted) {
			a.Wanted = wanted
		}
	}
	d.Mesh.Ack(s.peer, s.number, a)
	if began {
		d.carryJoined(s)
	}
	if d.Hooks.Stepped != nil {
		d.showBeat(s)
	}
}

// carryJoined lets beats speak for the elections that joined the set before any came.
func (d *Driver) carryJoined(s *session) {
	for _, name := range s.follows.Groups() {
		if g := d.groups[name]; g != nil && g.session == s && !g.carried && s.watcher(d, g.class).hears {
			g.carried, g.heard = true, 0
			d.bringUpToDate(g)
		}
	}
}

// showBeat shows a test what a beat promises, although the machines learn of it later.
func (d *Driver) showBeat(s *session) {
	for _, name := range s.follows.Groups() {
		g := d.groups[name]
		if g == nil || g.session != s || !g.carried || g.observes {
			continue
		}
		state := g.machine.State()
		state.Now = d.Now()
		if p := &state.Promise; p.To == s.peer {
			p.Until = max(p.Until, s.follows.Heard().Add(g.promise()))
		}
		d.Hooks.Stepped(testhook.Step{
			Group: name, In: elector.Carry{Peer: s.peer, Term: g.pairTerm, At: s.follows.Heard()},
			Effects: &elector.Effects{}, State: state, Lease: g.machine.Lease(),
		})
	}
}

// beginAnew, §16.5, empties the set of what is followed in a session. The elections watch their
// leader themselves until they hear it in a heartbeat and join again. All that costs a step of each
// election, so it is done once a heartbeat period at most, whatever the peer says. It costs nothing
// if no election of this node is in the set.
func (d *Driver) beginAnew(s *session) {
	if s.follows.Len() == 0 || len(s.watchers) == 0 {
		d.Mesh.Change(s.peer, s.number, []pair.Change{s.follows.Empty()})
		s.empty = false
		return
	}
	soon := true
	for _, w := range s.watchers {
		soon = soon && d.Now() < s.emptied.Add(w.usual())
	}
	if s.empty = soon; soon {
		return
	}
	s.emptied = d.Now()
	d.Mesh.Change(s.peer, s.number, []pair.Change{s.follows.Empty()})
	d.tellAll(func(d *Driver, g *group) {
		if g.session == s {
			d.bringUpToDate(g)
			g.session, g.carried = nil, false
			d.step(g, elector.LinkUp{Peer: s.peer})
		}
	})
}

// disowned lets an election follow no more who said that it does not lead in that term. If that
// peer had drawn it from another leader, it claimed what it does not do.
func (d *Driver) disowned(s *session, name string, term lsn.Term) {
	g := d.groups[name]
	if g == nil || g.Gone.happened() {
		if s.follows.Follows(name, term) {
			d.leaveSet(s, name)
		}
		return
	}
	drawn := g.drawnBy == s.peer && g.machine.Leader() == s.peer
	d.step(g, elector.Lose{Peer: s.peer, Term: term})
	if drawn && g.machine.Leader() != s.peer {
		d.noteSilence(g, s.peer)
	}
}
