package elector_test

import (
	"reflect"
	"slices"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/elector/pair"
	"github.com/bmqelect/bmqelect/lsn"
)

// In a scene with pairs each node has both ends of a session with each other one, as real values of
// elector/pair, and what cluster/internal/loop does with them, written once more. A beat is sent
// each quantum, as are heartbeats. Beats and acks are datagrams, of which the newest of a link and
// kind is on its way. Changes keep their order, and messages may overtake them. One more election
// of the two nodes stands for all others. It joins and leaves at any time.

// The elections of a pair: the one whose machines are stepped, and all others.
const ours, theirs = "g", "h"

// glue is what a node has besides its machine. It is known by its number.
type glue struct {
	ends    [mostPaired]end // by peer
	session int8            // the peer in whose session our election is followed; -1 for none
	over    bool            // that session has ended
	leader  int8            // the Pairing of that
	term    uint8
	carried bool
	owed    bool // a beat came since the machine was stepped with Carry
	acked   bool // or an ack, since it was with Backed
}

// end is a session as one node sees it: what it follows of the peer, and what it leads.
type end struct {
	up                 bool
	follows            follows
	leads              leads
	hears, empty, anew bool
	silent             uint8 // quanta without a beat
	emptied            age
	in                 [mostChanges]change // what is on its way from the peer, in order
}

// age is how many quanta ago something was, and one more; 0 for never. It has a highest value, as
// no timer of these scenes lasts longer than that.
type age uint8

const oldest age = 5

// change is a pair.Change on its way; zero for none.
type change struct {
	what           pair.What
	term, revision uint8
	others         bool
	waits          uint8 // quanta that it was on its way
}

const mostChanges, mostPaired = 10, 3

func (c *change) real() pair.Change {
	group := map[bool]string{false: ours, true: theirs}[c.others]
	if c.what == pair.Empty || c.what == pair.Begin {
		group = ""
	}
	return pair.Change{
		What: c.what, Revision: uint64(c.revision), Group: group, Term: lsn.Term(c.term),
	}
}

// follows is a pair.Follower.
type follows struct {
	term           uint8 // of our election; 0 if it is not followed
	others         bool
	taken          bool // the newest beat was, and may come again
	revision, read uint8
	heard, readAt  age
}

// leads is a pair.Leader.
type leads struct {
	term     uint8
	others   bool
	revision uint8
	counted  age
	early    [2]early
}

type early struct {
	revision uint8
	sent     age
}

// datagram is a beat or an ack, in a parcel. The time in it is that of the parcel's message.
type datagram struct {
	kind     uint8
	revision uint8
	hash     uint64
}

const (
	beatKind uint8 = 14 // above those of messages
	ackKind  uint8 = 15
)

// newest is the sequence of the newest beat, whichever it is.
const newest = 2

// evening is when all happens that is done to the ends of a pair.
const evening = 1000 * unit

func (a age) time() elector.Time {
	if a == 0 {
		return 0
	}
	return evening - elector.Time(a-1)*unit
}

func ageOf(v reflect.Value) age {
	if v.Int() == 0 {
		return 0
	}
	return min(age((int64(evening)-v.Int())/int64(unit))+1, oldest)
}

func (a *age) grow() {
	if *a != 0 {
		*a = min(*a+1, oldest)
	}
}

// real makes the end of a session by what it might have gone through.
func (s *follows) real() *pair.Follower {
	f := pair.NewFollower()
	for range s.revision - truth(s.others) - truth(s.term != 0) {
		f.Empty()
	}
	if s.others {
		f.Join(theirs, 1, false)
	}
	if s.term != 0 {
		f.Join(ours, lsn.Term(s.term), false)
	}
	if s.readAt != 0 {
		f.Unread(s.readAt.time(), pair.Beat{Revision: uint64(s.revision)})
		f.Unread(s.readAt.time(), pair.Beat{Revision: uint64(s.read)})
	}
	if s.heard != 0 {
		f.Beat(s.heard.time(), pair.Beat{Sequence: newest - uint64(truth(!s.taken))})
	}
	return f
}

// after takes over what has become of that end.
func (s *follows) after(f *pair.Follower) {
	v := reflect.ValueOf(f).Elem()
	s.term, s.others = termIn(f, ours), termIn(f, theirs) != 0
	s.revision, s.taken = small8(v.FieldByName("revision")), v.FieldByName("sequence").Uint() == newest
	s.read, s.readAt = small8(v.FieldByName("read")), ageOf(v.FieldByName("readAt"))
	s.heard = ageOf(v.FieldByName("heard"))
}

func small8(v reflect.Value) uint8 { return uint8(v.Uint()) }

// termIn is the term of an election in the set of an end; 0 if it is not there.
func termIn(set interface{ Follows(string, lsn.Term) bool }, election string) uint8 {
	for term := lsn.Term(1); term < mostTerms; term++ {
		if set.Follows(election, term) {
			return uint8(term)
		}
	}
	return 0
}

func (s *leads) real() *pair.Leader {
	l := pair.NewLeader()
	r := uint64(s.revision - truth(s.others) - truth(s.term != 0))
	join := func(election string, term lsn.Term) {
		r++
		l.Read(pair.Change{What: pair.Join, Revision: r, Group: election, Term: term})
	}
	if r > 0 {
		l.Read(pair.Change{What: pair.Empty, Revision: r})
	}
	if s.others {
		join(theirs, 1)
	}
	if s.term != 0 {
		join(ours, lsn.Term(s.term))
	}
	for range newest - 1 {
		l.Beat(evening, 1, 0) // acks come of what was sent: by then or before
	}
	if s.counted != 0 {
		l.Acked(pair.Ack{Sequence: 1, SentAt: s.counted.time()})
	}
	for _, e := range s.early {
		if e.sent != 0 {
			l.Acked(pair.Ack{Sequence: 1, SentAt: e.sent.time(), Revision: uint64(e.revision)})
		}
	}
	return l
}

func (s *leads) after(l *pair.Leader) {
	v := reflect.ValueOf(l).Elem()
	s.term, s.others = termIn(l, ours), termIn(l, theirs) != 0
	s.revision, s.counted = small8(v.FieldByName("revision")), ageOf(v.FieldByName("counted"))
	for i := range s.early {
		e := v.FieldByName("early").Index(i)
		s.early[i] = early{small8(e.FieldByName("Revision")), ageOf(e.FieldByName("SentAt"))}
	}
}

// edit changes the glue of a node.
func (x *search) edit(w *snapshot, node int, change func(g *glue)) {
	g := x.glues[w.peers[node].glue]
	change(&g)
	for peer := range g.ends {
		f := &g.ends[peer].follows
		if f.heard != 0 && !(g.owed && g.session == int8(peer)) {
			f.heard = oldest // the machine knows it, or was promised later
		}
		if x.misses == 0 {
			f.read, f.readAt = 0, 0 // nobody waits for a change for long
		}
	}
	number, known := x.glueNo[g]
	if !known {
		number = int32(len(x.glues))
		x.glueNo[g] = number
		x.glues = append(x.glues, g)
	}
	w.peers[node].glue = number
}

func (x *search) glueOf(w *snapshot, node int) *glue { return &x.glues[w.peers[node].glue] }

// rebase counts the revisions of a direction anew: only how they compare matters. A beat or an ack
// below what was read, or is known, says no more than any older one.
func (x *search) rebase(w *snapshot, node, peer int) {
	const low = 3
	f, l := x.glueOf(w, node).ends[peer], x.glueOf(w, peer).ends[node]
	if !f.up || !l.up {
		return
	}
	for i := range w.traffic.n {
		p := x.parcels[w.traffic.flights[i].number]
		switch {
		case p.kind == ackKind && p.from == node && p.to == peer && p.revision <= l.leads.revision,
			p.kind == beatKind && p.from == peer && p.to == node && p.revision < f.follows.revision &&
				x.misses == 0:
			p.revision, p.hash = 0, 0
			w.traffic.flights[i].number = x.parcel(p, false)
		}
	}
	by := max(min(f.follows.revision, l.leads.revision), low) - low
	for _, fl := range w.traffic.flights[:w.traffic.n] {
		p := &x.parcels[fl.number]
		if p.kind == beatKind && p.from == peer && p.to == node && p.revision != 0 {
			by = min(by, max(p.revision, low)-low)
		}
	}
	if f.follows.read != 0 {
		by = min(by, max(f.follows.read, low)-low)
	}
	if by == 0 {
		return
	}
	lower := func(r *uint8) {
		if *r != 0 {
			*r -= by
		}
	}
	x.edit(w, node, func(g *glue) {
		lower(&g.ends[peer].follows.revision)
		lower(&g.ends[peer].follows.read)
	})
	x.edit(w, peer, func(g *glue) {
		e := &g.ends[node]
		lower(&e.leads.revision)
		lower(&e.leads.early[0].revision)
		lower(&e.leads.early[1].revision)
		for i := range e.in {
			lower(&e.in[i].revision)
		}
	})
	for i := range w.traffic.n {
		p := x.parcels[w.traffic.flights[i].number]
		if between(p.from, p.to, node, peer) && (p.kind == beatKind && p.to == node ||
			p.kind == ackKind && p.from == node) {
			lower(&p.revision)
			w.traffic.flights[i].number = x.parcel(p, false)
		}
	}
}

// rebaseAll does so for all directions.
func (x *search) rebaseAll(w *snapshot) {
	for i := range x.nodes {
		for j := range x.nodes {
			if i != j {
				x.rebase(w, i, j)
			}
		}
	}
}

// forgetPair clears what is over of a follower for whose leader beats speak.
func (x *search) forgetPair(node int, s *elector.State, since elector.Time) {
	f, now := &s.Follower, noon(node)+since
	if f.HeardAt.Add(x.timing.Inactivity()) <= now {
		f.HeardAt = 1 // it would be suspected at once
	}
	if f.SaidAt.Add(x.timing.HeartbeatBroadcast) <= now {
		f.SaidAt = 1
	}
	leader := noon(slices.Index(x.voters, f.Leader)) + since
	f.EchoedAt = max(f.EchoedAt, leader-elector.Time(x.timing.Lease))
}
