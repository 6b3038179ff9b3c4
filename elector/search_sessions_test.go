package elector_test

import (
	"fmt"
	"reflect"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/elector/pair"
	"github.com/bmqelect/bmqelect/lsn"
)

// What cluster/internal/loop does with pairs, for the search of whole clusters.

func (x *search) leadTerm(w *snapshot, node int) lsn.Term {
	if w.peers[node].machine < 0 {
		return 0
	}
	return x.state(w, node).Leader.Term // zero unless LEADER
}

// backing are the ages of the newest beats that peers have acknowledged for what a node leads.
func (x *search) backing(w *snapshot, node int) (ages [mostPaired]age, n int) {
	term := x.leadTerm(w, node)
	for peer, e := range x.glueOf(w, node).ends[:x.nodes] {
		if !e.up || term == 0 || e.leads.term == 0 || e.leads.counted == 0 {
			continue
		}
		l := e.leads.real()
		at := l.Support(ours, term)
		if x.broken == anyTerm {
			at = l.Counted()
		}
		if at != 0 {
			ages[peer] = ageOf(reflect.ValueOf(at))
			n++
		}
	}
	return ages, n
}

// owed is the input that a machine must have before any other.
func (x *search) owed(w *snapshot, node int) (what deed, number uint32) {
	g := x.glueOf(w, node)
	if g.session >= 0 && g.carried && g.owed {
		heard := g.ends[g.session].follows.heard
		return carries, uint32(g.session) | uint32(g.term)<<3 | uint32(heard)<<8
	}
	if !g.acked {
		return tick, 0
	}
	if ages, n := x.backing(w, node); n > 0 {
		for peer, a := range ages {
			number |= uint32(a) << (3 * peer)
		}
		return backs, number
	}
	return tick, 0
}

// later is the bit of the number of an input that comes when the clock has gone on.
const later = 1 << 31

// paired is the input of such a number.
func (x *search) paired(node int, what deed, number uint32) elector.Input {
	at := func(a age) elector.Time {
		if a == 0 {
			return 0
		}
		return noon(node) + elector.Time(number>>31)*unit - elector.Time(a-1)*unit
	}
	switch peer, term := number&7, lsn.Term(number>>3&31); what {
	case carries:
		return elector.Carry{Peer: x.voters[peer], Term: term, At: at(age(number >> 8 & 15))}
	case backs:
		var in elector.Backed
		for v := range x.nodes {
			if a := age(number >> (3 * v) & 7); a != 0 {
				in.By = append(in.By, elector.Backing{Peer: x.voters[v], SentAt: at(a)})
			}
		}
		return in
	case gives:
		return elector.Lose{Peer: x.voters[peer], Term: term}
	}
	return elector.Covered{All: number != 0}
}

// bringUpToDate steps a machine with what beats have brought.
func (x *search) bringUpToDate(w *snapshot, node int, advance uint32) (err error) {
	what, number := x.owed(w, node)
	x.edit(w, node, func(g *glue) { g.owed, g.acked = false, false })
	if what == tick {
		return nil
	}
	return x.stepOnce(w, node, what, number|advance, false)
}

// effective is the state of a machine if it knew what beats have brought.
func (x *search) effective(w *snapshot, node int) *elector.State {
	if !x.pairs {
		return x.state(w, node)
	}
	what, number := x.owed(w, node)
	if what == tick {
		return x.state(w, node)
	}
	key := stepKey{machine: w.peers[node].machine, number: number, what: what}
	s, known := x.knows[key]
	if !known {
		m := x.blank(w, node).At(x.machines[key.machine].state, nil)
		m.Step(noon(node), lowest, x.paired(node, what, number))
		state := m.State()
		s, x.knows[key] = &state, &state
	}
	return s
}

// told reports whether beats tell a peer that a node leads in a term.
func (x *search) told(w *snapshot, node, peer int, term lsn.Term) bool {
	e := &x.glueOf(w, node).ends[peer]
	return e.up && (e.leads.real().Follows(ours, term) || x.broken == neverSays)
}

// covered reports whether beats tell all that a node leads.
func (x *search) covered(w *snapshot, node int) bool {
	for peer := range x.nodes {
		if w.peers[node].linked>>peer&1 != 0 && !x.told(w, node, peer, x.leadTerm(w, node)) {
			return false
		}
	}
	return true
}

// tend does what a driver does after a step: §16.1, §16.2, §16.8.
func (x *search) tend(w *snapshot, node int, before lsn.Term, done *stepped) error {
	if now := x.leadTerm(w, node); now != before && before != 0 {
		for peer, e := range x.glueOf(w, node).ends[:x.nodes] {
			if e.up && e.leads.real().Follows(ours, before) {
				x.disown(w, node, peer, before)
			}
		}
	}
	if err := x.tendSession(w, node, done); err != nil {
		return err
	}
	s := x.state(w, node)
	quiet := s.Role == elector.Leader && s.Leader.Covered && s.Leader.BroadcastAt == 0
	switch {
	case quiet && !x.watched(w, node):
		return x.stepOnce(w, node, covers, 0, false)
	case done.repeats && x.covered(w, node):
		return x.stepOnce(w, node, covers, 1, false)
	}
	return nil
}

// quiet reports whether beats speak to all for a leader, and both ends of each pair know that.
// After a lost change heartbeats may go on instead, until the next change.
func (x *search) quiet(w *snapshot, leader int) bool {
	term := uint8(x.leadTerm(w, leader))
	for i := range x.nodes {
		g := x.glueOf(w, i)
		there := x.glueOf(w, leader).ends[i].leads.term
		carried := g.session == int8(leader) && g.carried && g.term == term
		if i != leader && !(carried && there == term) {
			return false
		}
	}
	return x.state(w, leader).Leader.Covered
}

// watched reports whether acks of beats give a quiet leader a lease that has not ended.
func (x *search) watched(w *snapshot, node int) bool {
	ages, _ := x.backing(w, node)
	backing := 1
	for _, a := range ages {
		if a != 0 && elector.Time(a-1)*unit < elector.Time(x.timing.Lease) {
			backing++
		}
	}
	return backing >= elector.Majority(x.nodes)
}

// tendSession keeps our election in the followed set, or out of it.
func (x *search) tendSession(w *snapshot, node int, done *stepped) error {
	g := *x.glueOf(w, node)
	leader, fresh := done.leader, done.fresh || x.broken == unfresh && done.leader >= 0
	same := leader == g.leader && done.leaderTerm == lsn.Term(g.term)
	if g.session < 0 && !fresh || g.session >= 0 && !g.over && same {
		return nil
	}
	next := int8(-1)
	if fresh && g.ends[leader].up {
		next = leader
	}
	if g.session >= 0 && g.session != next {
		x.changes(w, node, int(g.session), func(f *pair.Follower) (pair.Change, bool) {
			return f.Leave(ours)
		})
	}
	before, over := g.session, g.over
	x.edit(w, node, func(g *glue) {
		g.session, g.over, g.leader, g.term = next, false, leader, uint8(done.leaderTerm)
		g.carried, g.owed = false, false
		if next < 0 {
			g.leader, g.term = -1, 0
		}
	})
	if next < 0 {
		if before >= 0 && !over && leader == before {
			return x.stepOnce(w, node, linkUp, uint32(before), false)
		}
		return nil
	}
	x.changes(w, node, int(next), func(f *pair.Follower) (pair.Change, bool) {
		return f.Join(ours, done.leaderTerm, false)
	})
	x.edit(w, node, func(g *glue) {
		if e := &g.ends[next]; e.hears {
			g.carried, g.owed = true, e.follows.heard != 0
		}
	})
	return nil
}

// changes changes the followed set, and sends that, if the session goes on.
func (x *search) changes(w *snapshot, node, peer int, do func(*pair.Follower) (pair.Change, bool)) {
	var c pair.Change
	var changed bool
	x.edit(w, node, func(g *glue) {
		e := &g.ends[peer]
		f := e.follows.real()
		c, changed = do(f)
		changed = changed && e.up
		if e.up {
			e.follows.after(f)
		}
	})
	if changed {
		x.put(w, node, peer, c)
	}
}

// put sends a change, unless the link is gone.
func (x *search) put(w *snapshot, node, peer int, c pair.Change) {
	if !x.reaches(w, node, peer) {
		return
	}
	x.edit(w, peer, func(g *glue) {
		in := &g.ends[node].in
		for i := range in {
			if in[i] == (change{}) {
				if i > 0 && c.What == pair.Disown && in[i-1].real() == c {
					return // it is said at most once a period
				}
				in[i] = change{
					what: c.What, term: uint8(c.Term), revision: uint8(c.Revision), others: c.Group == theirs,
				}
				return
			}
		}
		x.crowded = true
	})
}

// reaches reports whether what a node sends arrives.
func (x *search) reaches(w *snapshot, node, peer int) bool {
	both := w.peers[node].linked >> peer & (w.peers[peer].linked >> node) & 1
	return both != 0 && w.cut>>x.pair(node, peer)&1 == 0
}

func (x *search) disown(w *snapshot, node, peer int, term lsn.Term) {
	if x.broken != neverDisowns {
		x.put(w, node, peer, pair.Change{What: pair.Disown, Group: ours, Term: term})
	}
}

// open begins the session of a new link at one end.
func (x *search) open(w *snapshot, node, peer int) {
	if x.pairs {
		x.edit(w, node, func(g *glue) { g.ends[peer] = end{up: true} })
	}
}

// close ends a session at one end, after the machine was told what it has brought.
func (x *search) close(w *snapshot, node, peer int) error {
	if !x.pairs || w.peers[node].machine < 0 || !x.glueOf(w, node).ends[peer].up {
		return nil
	}
	var err error
	if x.broken != endUnwritten {
		err = x.bringUpToDate(w, node, 0)
	}
	x.edit(w, node, func(g *glue) {
		g.ends[peer] = end{}
		g.over = g.session == int8(peer)
		g.owed = g.owed && !g.over
	})
	return err
}

// wakeLeader lets a lease that has ended end before anything counts for it.
func (x *search) wakeLeader(w *snapshot, node int) error {
	s := x.state(w, node)
	if s.Role == elector.Leader && s.Leader.LeaseEnd <= noon(node) && x.broken != tooLate {
		return x.step(w, node, tick, 1, false)
	}
	return nil
}

// hear takes a beat or an ack.
func (x *search) hear(w *snapshot, node int, p *parcel) error {
	if !x.glueOf(w, node).ends[p.from].up {
		return nil
	}
	if p.kind == beatKind {
		return x.hearBeat(w, node, p)
	}
	return x.hearAck(w, node, p)
}

// sentAt is the age of the time in a datagram.
func (p *parcel) sentAge() age {
	return min(age((noon(p.owner())-p.msg.SentAt)/unit)+1, oldest)
}

func (x *search) hearBeat(w *snapshot, node int, p *parcel) error {
	e := x.glueOf(w, node).ends[p.from]
	f := e.follows.real()
	if x.broken == anySequence {
		e.follows.taken = false
		f = e.follows.real()
	}
	at := p.sentAge().time()
	b := pair.Beat{Sequence: newest, SentAt: at, Revision: uint64(p.revision), Hash: p.hash}
	if f.Differs(b) {
		return fmt.Errorf("the sets of %s and %s differ", x.voters[node], x.voters[p.from])
	}
	if e.empty {
		return x.beginAnew(w, node, p.from)
	}
	if f.Unread(evening, b) > x.timing.Inactivity() && x.broken != neverAnew {
		if err := x.beginAnew(w, node, p.from); err != nil {
			return err
		}
		f = x.glueOf(w, node).ends[p.from].follows.real()
		f.Unread(evening, b)
	}
	a, fresh := f.Beat(evening, b)
	if !fresh {
		return nil
	}
	began := !e.hears
	x.edit(w, node, func(g *glue) {
		e := &g.ends[p.from]
		e.follows.after(f)
		e.hears, e.silent = true, 0
		if g.session == int8(p.from) && (g.carried || began) {
			g.carried, g.owed = true, true
		}
	})
	x.sendDatagram(w, node, p.from, datagram{kind: ackKind, revision: uint8(a.Revision)},
		noon(p.from)-elector.Time(p.sentAge()-1)*unit)
	if began {
		return x.bringUpToDate(w, node, 0)
	}
	return nil
}

func (x *search) sendDatagram(w *snapshot, node, peer int, d datagram, at elector.Time) {
	kind := elector.LeaderHeartbeat
	if d.kind == ackKind {
		kind = elector.HeartbeatAck
	}
	p := parcel{from: node, to: peer, datagram: d, msg: elector.Message{Kind: kind, SentAt: at}}
	if x.reaches(w, node, peer) {
		number := x.parcel(p, false)
		w.traffic.put(flight{x.lanes[number], 0, number})
	}
}

func (x *search) hearAck(w *snapshot, node int, p *parcel) error {
	if err := x.wakeLeader(w, node); err != nil {
		return err
	}
	x.edit(w, node, func(g *glue) {
		e := &g.ends[p.from]
		l := e.leads.real()
		before := l.Counted()
		a := pair.Ack{Sequence: 1, SentAt: p.sentAge().time(), Revision: uint64(p.revision)}
		switch x.broken {
		case anyRevision:
			a.Revision = 0
		case fromArrival:
			a.SentAt = evening
		}
		l.Acked(a)
		e.leads.after(l)
		g.acked = g.acked || l.Counted() != before
	})
	return x.tellLoud(w, node)
}

// tellLoud tells a leader that is not quiet at once what counts.
func (x *search) tellLoud(w *snapshot, node int) error {
	s := x.state(w, node)
	if x.glueOf(w, node).acked && s.Role == elector.Leader && !s.Leader.Covered {
		return x.step(w, node, tick, 1, false)
	}
	return nil
}

// beginAnew empties a followed set: §16.5.
func (x *search) beginAnew(w *snapshot, node, peer int) error {
	g := x.glueOf(w, node)
	e := &g.ends[peer]
	some := e.follows.term != 0 || e.follows.others
	soon := some && e.emptied == 1
	x.edit(w, node, func(g *glue) {
		e := &g.ends[peer]
		if e.empty = soon; !soon && some {
			e.emptied = 1
		}
	})
	if soon {
		return nil
	}
	ours := g.session == int8(peer)
	if ours {
		if err := x.bringUpToDate(w, node, 0); err != nil {
			return err
		}
	}
	x.changes(w, node, peer, func(f *pair.Follower) (pair.Change, bool) { return f.Empty(), true })
	if !ours {
		return nil
	}
	x.edit(w, node, func(g *glue) { g.session, g.leader, g.term, g.carried = -1, -1, 0, false })
	return x.step(w, node, linkUp, uint32(peer), false)
}

// reads takes the next change that came from a peer.
func (x *search) read(w *snapshot, node, peer int, lost bool) error {
	var c pair.Change
	x.edit(w, node, func(g *glue) {
		in := &g.ends[peer].in
		c = in[0].real()
		copy(in[:], in[1:])
		in[mostChanges-1] = change{}
	})
	switch {
	case lost:
		return nil
	case c.What == pair.Disown:
		return x.step(w, node, gives, uint32(peer)|uint32(c.Term)<<3, false)
	case c.What == pair.Begin:
		return x.beginAnew(w, node, peer)
	}
	return x.changed(w, node, peer, c)
}

func (x *search) changed(w *snapshot, node, peer int, c pair.Change) error {
	if err := x.wakeLeader(w, node); err != nil {
		return err
	}
	read, first, begin := false, false, false
	x.edit(w, node, func(g *glue) {
		e := &g.ends[peer]
		if e.anew = e.anew && c.What != pair.Empty; x.broken == unnoticedGap {
			c.Revision = uint64(e.leads.revision) + 1
		}
		none := e.leads.term == 0 && !e.leads.others
		l := e.leads.real()
		before := l.Counted()
		if read = l.Read(c); !read {
			begin = !e.anew && x.broken != neverAnew && x.broken != neverBegins
			e.anew = true
			return
		}
		l.Count()
		e.leads.after(l)
		g.acked = g.acked || l.Counted() != before
		first = c.What == pair.Join && none
	})
	if begin {
		x.put(w, node, peer, pair.Change{What: pair.Begin})
	}
	if !read {
		return nil
	}
	return x.tendMirror(w, node, peer, c, first)
}

// tendMirror acts on a change of what a peer follows.
func (x *search) tendMirror(w *snapshot, node, peer int, c pair.Change, first bool) error {
	err := x.tellLoud(w, node)
	leads := x.leadTerm(w, node)
	switch {
	case err != nil:
		return err
	case c.Group != theirs && c.What != pair.Join && leads != 0: // others may be left alone
		err = x.step(w, node, covers, 0, false)
	case c.Group == ours && leads != c.Term && c.What == pair.Join:
		x.disown(w, node, peer, c.Term)
	case c.Group == ours && c.What == pair.Join:
		if err = x.bringUpToDate(w, node, 0); err == nil && x.covered(w, node) {
			err = x.stepOnce(w, node, covers, 1, false)
		}
	}
	if first {
		x.beat(w, node, peer)
	}
	return err
}

// beat sends a beat, if the peer follows anything, and looks through the mirror: §16.8.
func (x *search) beat(w *snapshot, node, peer int) {
	e := x.glueOf(w, node).ends[peer]
	if l := &e.leads; !e.up || l.term == 0 && !l.others {
		return
	}
	var b pair.Beat
	x.edit(w, node, func(g *glue) {
		l := &g.ends[peer].leads
		r := l.real()
		b = r.Beat(evening, 1, 0)
		l.after(r)
	})
	x.edit(w, peer, func(g *glue) {
		g.ends[node].follows.taken = false
	})
	x.sendDatagram(w, node, peer, datagram{beatKind, uint8(b.Revision), b.Hash}, noon(node))
	if term := lsn.Term(e.leads.term); term != 0 && term != x.leadTerm(w, node) {
		x.disown(w, node, peer, term)
	}
}

// passPairs lets a quantum pass for the sessions of all nodes.
func (x *search) passPairs(w *snapshot, asleep int) {
	for node := range x.nodes {
		x.edit(w, node, func(g *glue) {
			for peer := range g.ends[:x.nodes] {
				e := &g.ends[peer]
				for _, a := range []*age{
					&e.follows.heard, &e.follows.readAt, &e.leads.counted,
					&e.leads.early[0].sent, &e.leads.early[1].sent, &e.emptied,
				} {
					a.grow()
				}
				if e.emptied > 1 {
					e.emptied = 0
				}
				if e.leads.counted > age(x.timing.Lease/time.Duration(unit)) {
					e.leads.counted = 0 // it backs no lease any more
				}
				if e.hears && node != asleep {
					e.silent++
				}
				for i := range e.in {
					if e.in[i] != (change{}) {
						e.in[i].waits++
					}
				}
			}
		})
	}
}

// tickPairs lets a process that runs send its beats, and suspect who sends none.
func (x *search) tickPairs(w *snapshot, node int) error {
	for peer := range x.nodes {
		g := x.glueOf(w, node)
		silent := elector.Time(g.ends[peer].silent)*unit >= elector.Time(x.timing.Inactivity())
		if !g.ends[peer].hears || !silent {
			x.beat(w, node, peer)
			continue
		}
		ours := g.session == int8(peer) && g.carried
		x.edit(w, node, func(g *glue) { g.ends[peer].hears, g.ends[peer].silent = false, 0 })
		if ours {
			if err := x.step(w, node, gives, uint32(peer), false); err != nil {
				return err
			}
		}
		x.beat(w, node, peer)
	}
	return nil
}

// waits reports whether a change has been on its way for as long as a scene allows.
func (x *search) waits(w *snapshot) bool {
	for node := range x.nodes {
		for _, e := range x.glueOf(w, node).ends[:x.nodes] {
			if e.in[0] != (change{}) && e.in[0].waits >= x.life {
				return true
			}
		}
	}
	return false
}

// ofPair is what may happen to the session of a node with a peer.
func (x *search) ofPair(w *snapshot, node, peer int) {
	e := &x.glueOf(w, node).ends[peer]
	at := event{node: int8(node), number: uint32(peer)}
	if e.in[0] != (change{}) {
		at.what = reads
		x.add(at)
		if w.spent.misses < x.misses {
			at.what = readsNot
			x.add(at)
		}
	}
	if at.what = otherJoins; e.up && w.spent.asked < x.others {
		if e.follows.others {
			at.what = otherLeaves
		}
		x.add(at)
	}
}

// other lets another election join or leave.
func (x *search) joinsOther(w *snapshot, node, peer int, joins bool) {
	w.spent.asked++
	x.changes(w, node, peer, func(f *pair.Follower) (pair.Change, bool) {
		if joins {
			return f.Join(theirs, 1, false)
		}
		return f.Leave(theirs)
	})
}

// dropChanges loses the changes that are on their way to a node.
func (x *search) dropChanges(w *snapshot, node, from int) {
	if x.pairs {
		x.edit(w, node, func(g *glue) { g.ends[from].in = [mostChanges]change{} })
	}
}
