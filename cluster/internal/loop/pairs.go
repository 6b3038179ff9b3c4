package loop

import (
	"slices"
	"time"

	"github.com/bmqelect/bmqelect/cluster/internal/guarded"
	"github.com/bmqelect/bmqelect/cluster/internal/testhook"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/elector/detector"
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
	joined   []*group       // joined the set, and wait for a beat to be carried
	leads    *pair.Leader   // what the peer follows; this node leads it
	beat     *guarded.Timer[ringer]
	period   time.Duration // of the beats to the peer
	wanted   time.Duration // the longest that the peer needs; 0 for any
	slowFrom elector.Time  // since when a longer period would do; 0: it would not
	anew     bool          // the peer was told to begin anew, and has not yet
	over     bool          // nothing of it counts any more, except what was promised
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
	s.beat = guarded.NewTimer[ringer](s)
	d.sessions[peer.Node] = s
}

// closeSession ends the session with a peer. Nothing of it that still comes counts. Each election
// writes down what the pair has promised for it before its next step.
func (d *Driver) closeSession(peer elector.NodeID) {
	s := d.sessions[peer]
	if s == nil {
		return
	}
	delete(d.sessions, peer)
	s.over, s.joined = true, nil
	d.alarms.Drop(s.beat)
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
		return elector.Carry{Peer: s.peer, Term: g.pairing.Term, At: g.heard}, true
	}
	if g.leadTerm == 0 || g.acks == d.acks {
		return nil, false
	}
	g.acks = d.acks
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
	if old == nil && !fresh || old != nil && !old.over && p == g.pairing {
		return
	}
	var next *session
	if fresh {
		next = d.sessions[p.Leader]
	}
	if old != nil && old != next {
		if c, changed := old.follows.Leave(g.Name); changed && !old.over {
			d.Mesh.Change(old.peer, old.number, []pair.Change{c})
		}
	}
	g.session, g.pairing, g.carried = next, p, false
	if next == nil {
		return
	}
	if c, changed := next.follows.Join(g.Name, p.Term, p.Observes); changed {
		d.Mesh.Change(next.peer, next.number, []pair.Change{c})
	}
	if next.watcher(d, g.class).hears {
		g.carried, g.heard = true, 0
	} else { // the machine watches the leader until a beat shows that beats come
		next.joined = append(next.joined, g)
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
	if s.follows.Differs(b) {
		d.countAnomaly("beat-differs", s.peer)
		d.beginAnew(s)
		return
	}
	now := d.Now()
	a, fresh := s.follows.Beat(now, b)
	if !fresh {
		return
	}
	for _, w := range s.watchers {
		if s.follows.Unread(now, b) > w.class.Timing.Inactivity() {
			d.beginAnew(s)
			break
		}
	}
	d.noteQuality(s, b, at)
	for _, w := range s.watchers {
		w.heard(d, b, at)
		if wanted := w.machine.Wanted(); wanted != 0 && (a.Wanted == 0 || wanted < a.Wanted) {
			a.Wanted = wanted
		}
	}
	d.Mesh.Ack(s.peer, s.number, a)
	joined := s.joined
	s.joined = nil
	for _, g := range joined {
		if g.session == s && !g.carried {
			g.carried, g.heard = true, 0
			d.bringUpToDate(g)
		}
	}
	if d.Hooks.Stepped != nil {
		d.showBeat(s)
	}
}

// showBeat shows a test what a beat promises, although the machines learn of it later.
func (d *Driver) showBeat(s *session) {
	for _, name := range s.follows.Groups() {
		g := d.groups[name]
		if g == nil || g.session != s || !g.carried || g.pairing.Observes {
			continue
		}
		state := g.machine.State()
		state.Now = d.Now()
		if p := &state.Promise; p.To == s.peer {
			p.Until = max(p.Until, s.follows.Heard().Add(g.promise()))
		}
		d.Hooks.Stepped(testhook.Step{
			Group: name, In: elector.Carry{Peer: s.peer, Term: g.pairing.Term, At: s.follows.Heard()},
			Effects: &elector.Effects{}, State: state, Lease: g.machine.Lease(),
		})
	}
}

// Acked takes the answer to a beat.
func (l *Loop) Acked(peer elector.NodeID, number uint64, a pair.Ack) {
	l.later(func(d *Driver) {
		if s := d.sessionOf(peer, number); s != nil {
			d.acked(s, a)
		}
	})
}

// acked counts the answer to a beat. A lease that has ended comes first.
func (d *Driver) acked(s *session, a pair.Ack) {
	d.endLeases()
	before := s.leads.Counted()
	if !s.leads.Acked(a) {
		d.countAnomaly("beat-never-sent", s.peer)
		return
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
}

// Changed takes changes of what the peer follows, and words of the peer that it does not lead.
func (l *Loop) Changed(peer elector.NodeID, number uint64, changes []pair.Change) {
	l.later(func(d *Driver) {
		s := d.sessionOf(peer, number)
		for i := 0; s != nil && !s.over && i < len(changes); i++ {
			d.changed(s, changes[i])
		}
		if s != nil && s.leads.Waits() {
			d.endLeases()
			before := s.leads.Counted()
			s.leads.Count()
			d.noteCounted(s, before)
		}
	})
}

// beginAnew, §16.5, empties the set of what is followed in a session. The elections watch their
// leader themselves until they hear it in a heartbeat and join again.
func (d *Driver) beginAnew(s *session) {
	old := s.follows.Groups()
	d.Mesh.Change(s.peer, s.number, []pair.Change{s.follows.Empty()})
	for _, name := range old {
		if g := d.groups[name]; g != nil && g.session == s {
			d.bringUpToDate(g)
			g.session, g.pairing, g.carried = nil, elector.Pairing{}, false
			d.step(g, elector.LinkUp{Peer: s.peer})
		}
	}
}

// changed takes one change.
func (d *Driver) changed(s *session, c pair.Change) {
	switch c.What {
	case pair.Disown:
		d.disowned(s, d.groups[c.Group], c.Term)
		return
	case pair.Begin:
		d.beginAnew(s)
		return
	case pair.Empty:
		s.anew = false
		s.leads.Look(s.leads.Len(), func(name string, _ lsn.Term) { d.uncover(name) })
	}
	d.endLease(d.groups[c.Group], d.Now()) // before acks count for it because it is followed
	if !s.leads.Read(c) {
		if !s.anew { // once, until it does
			s.anew = true
			d.Mesh.Change(s.peer, s.number, []pair.Change{{What: pair.Begin}})
		}
		return
	}
	switch c.What {
	case pair.Join, pair.Observe:
		d.checkLed(s, c.Group, c.Term)
		if !s.beat.Set() || s.beat.At == elector.Never {
			d.schedule(s, d.beatPeriod(s))
			s.ring(d, d.Now()) // the first beat lets elections be carried
		}
	case pair.Leave:
		d.uncover(c.Group)
	}
}

// disowned lets an election follow no more who said that it does not lead in that term. If that
// peer had drawn it from another leader, it claimed what it does not do.
func (d *Driver) disowned(s *session, g *group, term lsn.Term) {
	if g == nil {
		return
	}
	drawn := g.drawnBy == s.peer && g.follows == s.peer
	d.step(g, elector.Lose{Peer: s.peer, Term: term})
	if drawn && g.follows != s.peer {
		d.noteSilence(g, s.peer)
	}
}

// uncover lets a leader send heartbeats again: somebody is not carried any more.
func (d *Driver) uncover(name string) {
	if g := d.groups[name]; g != nil && g.leadTerm != 0 {
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
	covered, records := true, m.Record != (lsn.LSN{})
	for peer := range d.up {
		s := d.sessions[peer]
		// Who has no vote asks for the record at each heartbeat, until it has it.
		if s == nil || !s.leads.Follows(g.Name, m.Term) || records && s.leads.Observes(g.Name) {
			covered = false
			d.Mesh.Send(peer, g.Name, *m)
		}
	}
	return covered
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
		d.led[g.class]--
	}
	for _, s := range d.sessions {
		if before != 0 && s.leads.Follows(g.Name, before) {
			d.Mesh.Change(s.peer, s.number, []pair.Change{{What: pair.Disown, Group: g.Name, Term: before}})
		}
	}
}

// looksFor is the least number of elections at which each beat looks, so that what is followed and
// not led is found even if a program is wrong.
const looksFor = 16

func (s *session) usual() time.Duration { return s.period }

// ring sends the next beat: §16.1, §16.8.
func (s *session) ring(d *Driver, due elector.Time) {
	if s.leads.Len() == 0 {
		d.alarms.Set(s.beat, elector.Never)
		return
	}
	now := d.Now()
	d.slowDown(s)
	next := (now/elector.Time(s.period) + 1) * elector.Time(s.period)
	late := max(now.Sub(due), 0).Truncate(time.Microsecond)
	d.Mesh.Beat(s.peer, s.number, s.leads.Beat(now, s.period, late))
	d.alarms.Set(s.beat, next)
	s.leads.Look(looksFor+s.leads.Len()/128, func(name string, term lsn.Term) {
		d.checkLed(s, name, term)
	})
}

// beatPeriod is the shortest period of heartbeats among the elections that this node leads, or what
// the peer needs, if that is shorter.
func (d *Driver) beatPeriod(s *session) time.Duration {
	period := time.Duration(0)
	for c, n := range d.led {
		p := c.Timing.HeartbeatBroadcast
		if limits := c.Timing.Periods(); c.QoS != (detector.QoS{}) && s.wanted != 0 {
			p = min(max(s.wanted, limits.Shortest), p)
		}
		if n > 0 && (period == 0 || p < period) {
			period = p
		}
	}
	if period == 0 {
		period = elector.Article().HeartbeatBroadcast // it leads none of what the peer follows: §16.8
	}
	return period
}

// schedule makes the period of beats shorter at once.
func (d *Driver) schedule(s *session, period time.Duration) {
	s.period, s.slowFrom = d.beatPeriod(s), 0
	if s.wanted == 0 {
		s.period = period
	}
	next := (d.Now()/elector.Time(s.period) + 1) * elector.Time(s.period)
	if !s.beat.Set() || s.beat.At > next {
		d.alarms.Set(s.beat, next)
	}
}

// slowWindow is for how many periods a longer one must do before it is taken, and slowBy how much
// longer it must be: peers adapt to every change (§14.4).
const (
	slowWindow = 30
	slowBy     = 1.25
)

// slowDown takes a longer period once it has sufficed for long, and a shorter one at once.
func (d *Driver) slowDown(s *session) {
	p, now := d.beatPeriod(s), d.Now()
	switch {
	case p < s.period:
		s.period, s.slowFrom = p, 0
	case float64(p) <= slowBy*float64(s.period):
		s.slowFrom = 0
	case s.slowFrom == 0:
		s.slowFrom = now
	case now >= s.slowFrom.Add(slowWindow*p):
		s.period, s.slowFrom = p, 0
	}
}

// countAnomaly counts and logs what a peer should not do.
func (d *Driver) countAnomaly(kind string, peer elector.NodeID) {
	d.anomalies[kind] = Anomaly{d.anomalies[kind].Count + 1, time.Now()}
	if _, due := d.logged.Due(anomalyOf{kind, peer}); due {
		d.Log.Warn("anomaly", "kind", kind, "peer", peer)
	}
}
