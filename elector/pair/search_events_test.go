package pair_test

import (
	"fmt"
	"slices"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/elector/pair"
	"github.com/bmqelect/bmqelect/lsn"
)

// room is how many messages may wait on a stream when a node stands, is elected or gives up.
const room = 2

// event is one thing that happens.
type event struct {
	what deed
	peer int
	at   int // of the datagram
}

type deed uint8

const (
	passes    deed = iota // a tick of time
	reads                 // the follower reads from the stream of a leader
	isRead                // a leader reads from the stream of the follower
	hearsBeat             // a datagram arrives
	hearsAck
	beats    // a leader sends a beat
	says     // a leader says a heartbeat
	stands   // a node proposes itself, or re-affirms itself
	elected  // others elect it
	cedes    // a leader or candidate cedes
	stops    // a leader stops without a cession
	suspects // the detector of a pair suspects a leader
	cuts
	ends      // the follower notices that the link is gone
	endsThere // a leader notices
	links
	loses // a change for the leader is lost
	losesDown
	votes // another candidate asks the follower
	restarts
	dies
	proves // the death of a leader
	writes // the disk of the follower
	answers
	readsAhead  // the follower reads a message that overtook changes
	isReadAhead // a leader does
)

var deedNames = [...]string{"passes", "reads", "is read", "hears beat", "hears ack", "beats",
	"says", "stands", "is elected by others", "cedes", "stops", "suspects", "cut", "notices the end",
	"notices the end there", "link", "misses", "is missed",
	"is asked by another", "restarts", "dies", "is proven dead", "writes", "answers",
	"reads ahead", "is read ahead"}

// line describes an event before it happens.
func (w *world) line(e event) string {
	s := fmt.Sprintf("%s %s", names[e.peer], deedNames[e.what])
	show := func(it item) string {
		if it.change != (pair.Change{}) {
			return it.change.String()
		}
		return fmt.Sprintf("%s term=%d sent=%d", it.msg.Kind, max(it.msg.Term, it.msg.ProposedTerm),
			(it.msg.SentAt-noon)/tick)
	}
	switch e.what {
	case reads, losesDown:
		s += ": " + show(w.links[e.peer].down[0])
	case isRead, loses:
		s += ": " + show(w.links[e.peer].up[0])
	case hearsBeat:
		d := w.beats[e.at]
		s += fmt.Sprintf(": session %d beat %d sent %d", d.number, d.beat.Sequence,
			(d.beat.SentAt-noon)/tick)
	case hearsAck:
		d := w.acks[e.at]
		s += fmt.Sprintf(": session %d ack %d of %d, revision %d", d.number, d.ack.Sequence,
			(d.ack.SentAt-noon)/tick, d.ack.Revision)
	}
	return s
}

// events are all that may happen.
func (w *world) events() (all []event) {
	add := func(may bool, what deed, peer int) {
		if may && !slices.Contains(w.x.without, what) {
			all = append(all, event{what: what, peer: peer})
		}
	}
	add(true, passes, 0)
	add(w.x.votes && w.term < w.x.terms, votes, 1)
	add(w.spent.restarts[0] < w.x.restarts, restarts, 0)
	add(w.f.writing != (elector.Terms{}), writes, 0)
	add(w.pending != (datagram{}), answers, 0)
	for i := range w.x.leaders {
		l, k := &w.leaders[i], &w.links[i]
		here := w.f.sessions[i]
		newTerm := w.term < w.x.terms
		add(here != nil && len(k.down) > 0, reads, i)
		add(here != nil && len(k.down) > 0 &&
			w.spent.loses[0] < w.x.loses, losesDown, i)
		add(here != nil && overtaking(k.down) > 0, readsAhead, i)
		add(here != nil && here.hears, suspects, i)
		add(here != nil && k.broken, ends, i)
		add(here != nil && l.session != nil && !k.broken, cuts, i)
		if w.x.dies && i == 0 {
			add(!l.dead, dies, i)
			add(l.dead && !l.proven, proves, i)
		}
		if l.dead {
			continue
		}
		add(l.session != nil && len(k.up) > 0, isRead, i)
		add(l.session != nil && len(k.up) > 0 &&
			w.spent.loses[0] < w.x.loses, loses, i)
		add(l.session != nil && overtaking(k.up) > 0, isReadAhead, i)
		add(l.session != nil && k.broken, endsThere, i)
		add(k.broken && w.numbers[i] < w.x.sessions, links, i)
		add(l.session != nil && l.session.leads.Len() > 0 && w.spent.beats[i] < w.x.beats, beats, i)
		add(l.term != 0 && l.session != nil && !l.session.leads.Follows(group, l.term) &&
			w.spent.says[i] < w.x.says, says, i)
		if len(k.down) > room {
			continue
		}
		add(newTerm && l.asked == 0 && l.session != nil, stands, i)
		add(newTerm && w.x.others && l.term == 0 && l.asked == 0, elected, i)
		add(l.term != 0 || l.asked != 0, cedes, i)
		add(l.term != 0, stops, i)
	}
	for at, d := range w.beats {
		if w.f.sessions[d.peer] != nil {
			all = append(all, event{hearsBeat, d.peer, at})
		}
	}
	for at, d := range w.acks {
		if w.leaders[d.peer].session != nil {
			all = append(all, event{hearsAck, d.peer, at})
		}
	}
	return all
}

// do lets an event happen.
func (w *world) do(e event) error {
	i := e.peer
	l, k := &w.leaders[i], &w.links[i]
	switch e.what {
	case passes:
		return w.pass()
	case reads, readsAhead:
		return w.read(i, e.what == readsAhead)
	case isRead, isReadAhead:
		it := take(&k.up, e.what == isReadAhead)
		if it.change != (pair.Change{}) {
			return w.changed(i, it.change)
		}
		return w.hearsFollower(i, it.msg)
	case hearsBeat:
		return w.hearBeat(w.beats[e.at])
	case hearsAck:
		return w.hearAck(w.acks[e.at])
	case beats:
		w.tickLeader(i)
		w.spent.beats[i]++
		w.ring(i)
	case says:
		w.tickLeader(i)
		if l.term != 0 {
			w.spent.says[i]++
			w.heartbeat(i)
		}
	case stands:
		w.tickLeader(i)
		w.propose(i, w.term+1)
	case elected:
		w.term++
		w.lead(i, w.term, w.now, 0)
	case cedes, stops:
		w.cede(i, e.what == cedes)
	case suspects:
		w.f.sessions[i].hears = false
		if w.f.session == w.f.sessions[i] && w.f.carried {
			w.step(elector.Lose{Peer: names[i]})
		}
	case cuts:
		k.broken = true
	case ends:
		w.end(i)
	case endsThere:
		l.session = nil
	case links:
		w.connect(i)
	case loses:
		w.spent.loses[0]++
		k.up = k.up[1:]
	case losesDown:
		w.spent.loses[0]++
		k.down = k.down[1:]
	case votes:
		w.term++
		w.step(elector.Received{From: "b", Message: elector.Message{
			Kind: elector.ElectionProposal, Term: w.term, SentAt: w.now}})
	case writes:
		w.persist()
	case answers:
		return w.answer()
	default:
		return w.ends(e)
	}
	return nil
}

// ends lets a process end.
func (w *world) ends(e event) error {
	i := e.peer
	switch e.what {
	case restarts:
		w.spent.restarts[0]++
		for p := range w.links {
			w.links[p].broken = true
			w.links[p].down = nil
		}
		w.start()
	case dies:
		w.links[i].broken = true
		w.links[i].up = nil
		w.leaders[i] = leader{dead: true}
	case proves:
		w.leaders[i].proven = true
		if w.x.broken == deathInSetOnly && (w.f.session == nil || w.f.session.peer != i) {
			return nil
		}
		if w.x.broken != readsDead {
			w.close(i)
		}
		w.step(elector.Died{Peer: names[i], Proof: elector.ProofCertified})
	}
	return nil
}

func (w *world) end(i int) {
	w.close(i)
	w.step(elector.LinkDown{Peer: names[i]})
}

// connect makes a new link, whose number never comes again.
func (w *world) connect(i int) {
	w.numbers[i]++
	n := w.numbers[i]
	w.links[i], w.history[i], w.taken[i] = link{}, []lsn.Term{0}, 0
	w.leaders[i].session = &leading{number: n, leads: pair.NewLeader()}
	w.close(i)
	w.f.sessions[i] = &session{peer: i, number: n, follows: pair.NewFollower()}
	w.step(elector.LinkUp{Peer: names[i]})
	w.tickLeader(i)
	l := &w.leaders[i]
	if l.term != 0 {
		w.heartbeat(i)
	}
	if l.asked != 0 {
		w.tells(i, item{msg: elector.Message{
			Kind: elector.ElectionProposal, Term: l.asked, SentAt: w.now}})
	}
}

// forget drops the datagrams that can change nothing any more: those of a session that has ended at
// the end where they would arrive, beats before the newest that was taken, and acks by which
// no lease can last.
func (w *world) forget() {
	x := w.x
	w.beats = slices.DeleteFunc(slices.Clone(w.beats), func(d datagram) bool {
		s := w.f.sessions[d.peer]
		if s == nil || s.number != d.number {
			return x.broken != anySession
		}
		return d.beat.Sequence < w.taken[d.peer] && x.broken != anySequence && x.broken != anySession
	})
	w.acks = slices.DeleteFunc(slices.Clone(w.acks), func(d datagram) bool {
		s := w.leaders[d.peer].session
		past := s == nil || s.number != d.number
		return past && x.broken != anyAckSession || !past && d.ack.SentAt+lease <= w.now &&
			x.broken != fromArrival
	})
}

// pass lets a tick pass. A machine that knows nothing new is not stepped.
func (w *world) pass() error {
	w.now += tick
	wake := w.x.pool.known[w.f.machine].wake
	if wake != elector.Never && w.f.steppedAt+wake <= w.now || w.now-w.f.steppedAt >= lease {
		w.step(elector.Tick{})
	}
	return nil
}

// overtaking is where the first message is on a stream: it may overtake changes, which are sent
// behind all messages that wait. -1 for none.
func overtaking(stream []item) int {
	return slices.IndexFunc(stream, func(it item) bool { return it.change == (pair.Change{}) })
}

// take takes the first of a stream, or ahead of it the first message.
func take(stream *[]item, ahead bool) item {
	at := 0
	if ahead {
		at = overtaking(*stream)
	}
	it := (*stream)[at]
	*stream = slices.Concat((*stream)[:at], (*stream)[at+1:])
	return it
}

// read lets the follower read from a stream.
func (w *world) read(i int, ahead bool) error {
	it := take(&w.links[i].down, ahead)
	switch it.change.What {
	case pair.Disown:
		w.step(elector.Lose{Peer: names[i], Term: it.change.Term})
	case pair.Begin:
		w.beginAnew(w.f.sessions[i])
	default:
		w.step(elector.Received{From: names[i], Message: it.msg})
	}
	return nil
}

// hearBeat lets a beat arrive, which may be a copy, or of a session that has ended: (e).
func (w *world) hearBeat(d datagram) error {
	s, before := w.f.sessions[d.peer], w.promise()
	present := s.number == d.number
	if !present && w.x.broken != anySession {
		return nil
	}
	if w.x.broken == revisionFirst && w.pending == (datagram{}) {
		w.pending, w.revision = d, s.follows.Revision()
		return nil
	}
	if err := w.beaten(s, d.beat); err != nil {
		return err
	}
	extends := w.promise().until > before.until
	if extends && (!present || d.beat.Sequence <= w.taken[d.peer]) {
		return violation("(e): %s promises by beat %d of session %d, after %d of session %d", "f",
			d.beat.Sequence, d.number, w.taken[d.peer], s.number)
	}
	if present {
		w.taken[d.peer] = max(w.taken[d.peer], d.beat.Sequence)
	}
	return nil
}

// answer promises by a beat of which the revision was read before: a broken rule.
func (w *world) answer() error {
	d, revision := w.pending, w.revision
	w.pending, w.revision = datagram{}, 0
	s := w.f.sessions[d.peer]
	if s == nil || s.number != d.number {
		return nil
	}
	n := len(w.acks)
	err := w.beaten(s, d.beat)
	if len(w.acks) > n {
		w.acks[n].ack.Revision = revision
	}
	w.taken[d.peer] = max(w.taken[d.peer], d.beat.Sequence)
	return err
}

// hearAck lets the answer to a beat arrive.
func (w *world) hearAck(d datagram) error {
	if w.leaders[d.peer].session.number != d.number && w.x.broken != anyAckSession {
		return nil
	}
	return w.acked(d.peer, d.ack)
}

// check holds a state, and the step to it, against the invariants.
func (w *world) check(before *world) error {
	p, valid := w.promise(), -1
	for i := range w.x.leaders {
		l := &w.leaders[i]
		if l.term == 0 || l.lease <= w.now {
			continue
		}
		embargoed := w.ties().embargo >= l.lease
		bound := p.to == names[i] && p.term >= l.term && p.until >= l.lease
		if !embargoed && !bound && !w.x.leases {
			return violation("(a): %s counts f in term %d until %d, but f promises %s",
				names[i], l.term, (l.lease-noon)/tick, p)
		}
		if valid >= 0 {
			return violation("%s and %s have valid leases", names[valid], names[i])
		}
		valid = i
	}
	if err := w.mirrors(); err != nil || w.x.leases {
		return err
	}
	return w.shortens(before, p)
}

// mirrors checks that each leader's mirror is what the followed set was at its revision: (b).
func (w *world) mirrors() error {
	for i := range w.x.leaders {
		s := w.leaders[i].session
		if s == nil {
			continue
		}
		r := s.leads.Revision()
		if r >= uint64(len(w.history[i])) || s.leads.Term(group) != w.history[i][r] {
			return violation("(b): %s mirrors term %d at revision %d of %v", names[i],
				s.leads.Term(group), r, w.history[i])
		}
	}
	return nil
}

// shortens checks that a step does not shorten a promise without a cause, and that none is made to
// the dead: (c).
func (w *world) shortens(before *world, p promise) error {
	if p.to != "" && w.leaders[slices.Index(names[:], p.to)].proven {
		return violation("(c): f promises %s, which is proven dead", p)
	}
	was := before.promise()
	goesOn := was.to == p.to && p.until >= was.until
	if was.until <= w.now || goesOn || w.spent.restarts != before.spent.restarts {
		return nil
	}
	i := slices.Index(names[:], was.to)
	for at := range w.links {
		old, is := before.links[at].down, w.links[at].down
		if first := overtaking(old); first >= 0 && messages(old) > messages(is) {
			m := old[first].msg
			if at == i && m.Kind == elector.LeadershipCession && m.Term >= was.term ||
				at != i && m.Kind == elector.LeaderHeartbeat && m.Term > was.term {
				return nil
			}
		}
	}
	if w.leaders[i].proven {
		return nil
	}
	return violation("(c): f promised %s, and then %s", was, p)
}

func messages(stream []item) (n int) {
	for _, it := range stream {
		n += int(min(it.msg.Kind, 1))
	}
	return n
}

func (p promise) String() string {
	if p.to == "" {
		return "nobody"
	}
	return fmt.Sprintf("%s in term %d until %d", p.to, p.term, (p.until-noon)/tick)
}
