package elector_test

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/lsn"
)

// deed is what happens in one step of a search.
type deed uint8

const (
	starts deed = iota
	received
	persisted
	linkUp
	linkDown
	ends
	heals
	reads
	wakes
	tick
	faulty // what comes from here on need not happen for somebody to lead
	receivedTwice
	died
	heldUp
	sleeps
	pauses
	guards
	unguards
	ordered
	crashes
	crashesWritten
	cuts
	asked
	loses
	missed
	readsNot
	otherJoins
	otherLeaves
	carries // inputs of pairs
	backs
	gives
	covers
)

// event is a deed, of whom, and about what.
type event struct {
	what    deed
	node    int8
	longest bool   // the random wait
	number  uint32 // of the parcel, the peer or the order; the voters whose random wait is long
}

// line is an event, so many quanta after the begin, in the language of the scripts, behind the
// name of the node.
func (x *search) line(e event, now elector.Time) string {
	peer := ""
	if int(e.number) < x.nodes {
		peer = string(x.voters[e.number])
	}
	text := map[deed]string{
		starts: "start", persisted: "persisted", linkUp: "up " + peer,
		linkDown: "down " + peer, died: "died " + peer, guards: "guard", unguards: "unguard",
		crashes: "crash", crashesWritten: "crash, all written", ends: "ends", cuts: "cut " + peer,
		reads: "reads from " + peer, readsNot: "misses a change of " + peer,
		otherJoins:  "another election follows " + peer,
		otherLeaves: "another election follows " + peer + " no more",
		heals:       "heal " + peer, wakes: "tick", tick: "time passes",
		heldUp: "time passes, and it does not run", loses: "crash, and its disk is lost",
	}[e.what]
	switch e.what {
	case received, receivedTwice, missed:
		p := x.parcels[e.number]
		if p.msg.SentAt != 0 {
			p.msg.SentAt += now * x.rate(p.owner())
		}
		text = fmt.Sprintf("%s: %s", x.voters[p.from], p.msg)
		if p.kind != 0 {
			text = fmt.Sprintf("%s: %s sent=%s revision=%d", x.voters[p.from],
				map[uint8]string{beatKind: "beat", ackKind: "ack"}[p.kind], p.msg.SentAt, p.revision)
		}
		if e.what == receivedTwice {
			text += " (and stays on its way)"
		} else if e.what == missed {
			text += " (is lost)"
		}
	case ordered:
		text = fmt.Sprintf("%T%+v", x.orders[e.number], x.orders[e.number])
	case asked:
		text = fmt.Sprintf("%T%+v", x.asks[e.number], x.asks[e.number])
	}
	if e.longest {
		text += " random=100"
	}
	if e.node < 0 {
		return text
	}
	return fmt.Sprintf("%s  %s", x.voters[e.node], text)
}

// input is what a machine is stepped with.
func (x *search) input(node int, what deed, number uint32) elector.Input {
	switch what {
	case starts:
		return elector.Start{
			Term: lsn.Term(number >> 6 & 31), Reserved: lsn.Term(number >> 1 & 31), Led: number&1 != 0,
			Record: *x.records[number>>11],
		}
	case received:
		in := &x.parcels[number]
		got := elector.Received{From: x.voters[in.from], Message: in.msg}
		if x.keepsRecords() {
			got.Identity = identity(in.from, in.lives)
		}
		return got
	case persisted:
		return elector.Persisted{Term: lsn.Term(number & 255), Record: x.records[number>>8].LSN}
	case linkUp:
		return elector.LinkUp{Peer: x.voters[number]}
	case linkDown:
		return elector.LinkDown{Peer: x.voters[number]}
	case died:
		return elector.Died{Peer: x.voters[number]}
	case heldUp:
		return elector.HeldUp{For: x.rate(node).Sub(0)}
	case pauses:
		return elector.Pause{For: time.Duration(number) * time.Duration(unit)}
	case guards, unguards:
		return elector.Guard{Held: what == guards}
	case ordered:
		return x.orders[number]
	case asked:
		return x.asks[number]
	case carries, backs, gives, covers:
		return x.paired(node, what, number)
	}
	return elector.Tick{}
}

// do changes a state by an event.
func (x *search) do(w *snapshot, e event) error {
	err := x.happen(w, e)
	if x.pairs {
		x.rebaseAll(w)
	}
	if x.crowded && err == nil {
		err = errors.New("more changes are on their way than there is room for")
	}
	return err
}

func (x *search) happen(w *snapshot, e event) error {
	i, other := int(e.node), int(e.number)
	switch e.what {
	case starts:
		return x.boot(w, i, e.longest)
	case received, receivedTwice:
		at := w.find(e.number)
		again := w.traffic.flights[at]
		w.traffic.remove(at)
		var err error
		if p := x.parcels[e.number]; p.kind != 0 {
			err = x.hear(w, i, &p)
		} else {
			err = x.step(w, i, received, e.number, e.longest)
		}
		if e.what == receivedTwice {
			w.spent.twins++
			w.traffic.put(again)
		} else if p := x.parcels[e.number]; p.kind == beatKind && w.peers[i].machine >= 0 {
			x.edit(w, i, func(g *glue) { g.ends[p.from].follows.taken = false }) // no copy will come
		}
		return err
	case missed:
		w.spent.misses += truth(x.reliable)
		w.traffic.remove(w.find(e.number))
	case persisted:
		return x.step(w, i, persisted, w.peers[i].persisted(), e.longest)
	case linkUp:
		return x.connect(w, i, other)
	case linkDown:
		return x.notice(w, i, other)
	case died:
		w.peers[i].died &^= 1 << other
		return x.step(w, i, died, e.number, e.longest)
	case wakes:
		return x.step(w, i, tick, 1, e.longest)
	case tick:
		return x.pass(w, -1, e.number)
	case heldUp:
		w.spent.stalls++
		return x.pass(w, i, 0)
	case guards:
		w.peers[i].working = true
		w.peers[i].workEnd = x.state(w, i).Leader.LeaseEnd - noon(i)
		return x.step(w, i, guards, 0, false)
	case unguards:
		w.peers[i].working, w.peers[i].workEnd = false, 0
		return x.step(w, i, unguards, 0, false)
	case ordered:
		w.spent.orders++
		return x.step(w, i, ordered, e.number, e.longest)
	case crashes, crashesWritten:
		w.spent.crashes++
		if e.what == crashesWritten {
			w.peers[i].persisted()
		}
		x.end(w, i)
	case asked:
		w.spent.asked++
		return x.step(w, i, asked, e.number, false)
	case loses:
		w.spent.losses++
		x.end(w, i)
		p := &w.peers[i]
		p.disk, p.votes, p.lives = disk{}, 0, p.lives+1
	case ends:
		x.end(w, i)
	case cuts:
		w.spent.cuts++
		w.cut |= 1 << x.pair(i, other)
		x.dropBetween(w, i, other)
		w.peers[i].down |= 1 << other
		w.peers[other].down |= 1 << i
	case heals:
		w.cut &^= 1 << x.pair(i, other)
	case reads, readsNot:
		w.spent.misses += truth(e.what == readsNot)
		return x.read(w, i, other, e.what == readsNot)
	case otherJoins, otherLeaves:
		x.joinsOther(w, i, other, e.what == otherJoins)
	}
	return nil
}

// find is where a parcel is in the traffic.
func (w *snapshot) find(number uint32) int {
	for i, f := range w.traffic.flights[:w.traffic.n] {
		if f.number == number {
			return i
		}
	}
	panic("not on its way")
}

// events are all that may happen in a state, until the next call.
func (x *search) events(w *snapshot) []event {
	for node := range x.nodes {
		if x.hurries(w, node) {
			return x.may
		}
	}
	x.ofNodes(w, -1)
	x.ofTime(w)
	return x.may
}

// hurries reports whether it is enough to follow what a node does next, and if so makes that what
// may happen. In a scene that is in order a node that does not stand hurries: before anything
// happens elsewhere it gets what is sent to it, or that is lost. For it could not tell, nor could
// others, when in the quantum it gets it: what it does commutes with what they do, except that a
// newer message takes the place of an older one of its kind. So it does not hurry if one that it
// would send does. What is never received might as well be lost at once.
func (x *search) hurries(w *snapshot, node int) bool {
	if !x.inOrder || slices.Contains(x.stands, node) || !w.traffic.any(func(number uint32) bool {
		return x.parcels[number].to == node
	}) {
		return false
	}
	x.ofNodes(w, node)
	for _, e := range x.may {
		then := *w
		if x.replaced = false; x.do(&then, e) == nil && x.replaced {
			return false
		}
	}
	return true
}

// ofNodes makes what may happen to a node, or to each, what may happen.
func (x *search) ofNodes(w *snapshot, only int) {
	x.may = x.may[:0]
	for _, f := range w.traffic.flights[:w.traffic.n] {
		e := event{what: received, node: int8(x.parcels[f.number].to), number: f.number}
		if only >= 0 && int(e.node) != only {
			continue
		}
		x.drawn(e)
		if w.spent.twins < x.twins {
			e.what = receivedTwice
			x.add(e)
		}
		if only >= 0 && (!x.reliable || w.spent.misses < x.misses) {
			x.add(event{what: missed, node: e.node, number: f.number})
		}
	}
	for i := range x.nodes {
		if only >= 0 && i != only {
			if x.reliable && w.peers[i].machine >= 0 {
				x.ofFault(w, int8(i)) // what it sent may be lost
				x.ofLink(w, i, only)
			}
			continue
		}
		if w.peers[i].machine < 0 {
			x.add(event{what: starts, node: int8(i)})
			continue
		}
		x.ofProcess(w, int8(i))
		for j := range x.nodes {
			if j != i {
				x.ofLink(w, i, j)
				if x.pairs {
					x.ofPair(w, i, j)
				}
			}
		}
	}
}

func (x *search) add(e event) { x.may = append(x.may, e) }

// drawn adds an event with the shortest and the longest random wait, if there is one.
func (x *search) drawn(e event) {
	x.add(e)
	if x.timing.MaxRandomWait > 1 && (x.stands == nil || slices.Contains(x.stands, int(e.node))) {
		e.longest = true
		x.add(e)
	}
}

// ofProcess is what may happen to a process that runs.
func (x *search) ofProcess(w *snapshot, i int8) {
	p, s := &w.peers[i], x.state(w, int(i))
	writing := p.writing != (disk{})
	if writing {
		x.add(event{what: persisted, node: i})
	}
	if p.behind || x.due[p.machine] {
		x.drawn(event{what: wakes, node: i})
	}
	if s.Role == elector.Dormant && !writing {
		x.add(event{what: ends, node: i})
	} else {
		x.ofFault(w, i)
	}
	if next := uint32(w.spent.asked); int(next) < len(x.asks) && x.takes(w, int(i), x.asks[next]) {
		x.add(event{what: asked, node: i, number: next})
	}
	idle := !p.working && !s.Leader.Working && s.Leader.Handover == (elector.Handover{})
	if x.guard && s.Role == elector.Leader && idle && s.Leader.LeaseEnd > noon(int(i)) {
		x.add(event{what: guards, node: i})
	}
	if p.working {
		x.add(event{what: unguards, node: i})
	}
	if w.spent.orders < x.ordered && s.Role != elector.Dormant {
		for number := range x.orders {
			x.drawn(event{what: ordered, node: i, number: uint32(number)})
		}
	}
}

// ofFault ends a process that runs.
func (x *search) ofFault(w *snapshot, i int8) {
	if w.spent.crashes < x.crashes {
		x.add(event{what: crashes, node: i})
		if w.peers[i].writing != (disk{}) {
			x.add(event{what: crashesWritten, node: i})
		}
	}
	if w.spent.losses < x.losses {
		x.add(event{what: loses, node: i})
	}
}

// ofLink is what may happen to a link, as seen by one end that runs.
func (x *search) ofLink(w *snapshot, i, j int) {
	p, q := &w.peers[i], &w.peers[j]
	e := event{node: int8(i), number: uint32(j)}
	switch {
	case p.down>>j&1 != 0:
		e.what = linkDown
		x.add(e)
	case p.died>>j&1 != 0:
		e.what = died
		x.drawn(e)
	}
	if j > i || q.machine < 0 {
		return
	}
	ended := p.linked>>j&(q.linked>>i)&1 == 0 || (p.down>>j|q.down>>i)&1 != 0
	switch {
	case w.cut>>x.pair(i, j)&1 != 0:
		e.what = heals
	case ended:
		e.what = linkUp
	case w.spent.cuts < x.cuts:
		e.what = cuts
	default:
		return
	}
	x.add(e)
}

// ofTime lets a quantum pass. The random waits of nodes differ, or not.
func (x *search) ofTime(w *snapshot) {
	for i := range x.nodes {
		if p := &w.peers[i]; p.writing != (disk{}) && p.waits >= x.life {
			return // the disk is slower than the scene allows
		}
	}
	if x.pairs && x.waits(w) {
		return
	}
	if n := w.traffic.n; x.reliable && n > 0 && n+int(w.spent.misses) > int(x.misses) {
		return
	}
	x.add(event{what: tick, node: -1})
	if x.timing.MaxRandomWait > 1 {
		for set := range uint32(1)<<x.nodes - 1 {
			x.add(event{what: tick, node: -1, number: set + 1})
		}
	}
	for i := range x.nodes {
		if w.spent.stalls < x.stalls && w.peers[i].machine >= 0 && !w.peers[i].behind {
			x.add(event{what: heldUp, node: int8(i)})
		}
	}
}
