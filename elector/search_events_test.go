package elector_test

import (
	"fmt"

	"github.com/bmqelect/bmqelect/elector"
)

// deed is what happens in one step of a search.
type deed uint8

const (
	begins deed = iota
	starts
	received
	receivedTwice
	persisted
	linkUp
	linkDown
	died
	heldUp
	tick
	guards
	unguards
	ordered
	crashes
	crashesWritten
	ends
	cuts
	heals
)

// event is a deed, of whom, and about what.
type event struct {
	what    deed
	node    int8
	number  uint16 // of the parcel, the peer or the order
	entropy bool   // the random wait is the longest
}

func (e event) word() uint64 {
	if e.entropy {
		return highest
	}
	return lowest
}

// line is an event in the language of the scripts, behind the name of the node.
func (x *search) line(e event) string {
	peer := ""
	if int(e.number) < x.nodes {
		peer = string(x.voters[e.number])
	}
	text := map[deed]string{
		begins: "begin", starts: "start", persisted: "persisted", linkUp: "up " + peer,
		linkDown: "down " + peer, died: "died " + peer, guards: "guard", unguards: "unguard",
		crashes: "crash", crashesWritten: "crash, all written", ends: "ends", cuts: "cut " + peer,
		heals: "heal " + peer, tick: "time passes", heldUp: "time passes, and it does not run",
	}[e.what]
	switch e.what {
	case received, receivedTwice:
		p := x.parcels[e.number]
		text = fmt.Sprintf("%s: %s", x.voters[p.from], p.msg)
		if e.what == receivedTwice {
			text += " (and stays on its way)"
		}
	case ordered:
		text = fmt.Sprintf("%T%+v", x.orders[e.number], x.orders[e.number])
	}
	if e.entropy {
		text += " random=100"
	}
	if e.node < 0 {
		return text
	}
	return fmt.Sprintf("%s  %s", x.voters[e.node], text)
}

// input is what a machine is stepped with.
func (x *search) input(p *peer, node int, what deed, number uint16) elector.Input {
	switch what {
	case starts:
		return elector.Start{Term: p.disk.Entered, Reserved: p.disk.Reserved}
	case received:
		in := &x.parcels[number]
		return elector.Received{From: x.voters[in.from], Message: in.msg}
	case persisted:
		return elector.Persisted{Term: p.disk.Reserved}
	case linkUp:
		return elector.LinkUp{Peer: x.voters[number]}
	case linkDown:
		return elector.LinkDown{Peer: x.voters[number]}
	case died:
		return elector.Died{Peer: x.voters[number]}
	case heldUp:
		return elector.HeldUp{For: x.rate(node).Sub(0)}
	case guards, unguards:
		return elector.Guard{Held: what == guards}
	case ordered:
		return x.orders[number]
	}
	return elector.Tick{}
}

// do changes a state by an event.
func (x *search) do(w *snapshot, e event) error {
	i, other, word := int(e.node), int(e.number), e.word()
	same := func(int) uint64 { return word }
	switch e.what {
	case starts:
		return x.boot(w, i, word)
	case received:
		return x.deliver(w, x.find(w, e.number), same)
	case receivedTwice:
		w.spent.twins++
		at := x.find(w, e.number)
		again := w.traffic.flights[at]
		err := x.deliver(w, at, same)
		w.traffic.add(again)
		return err
	case persisted:
		return x.persisted(w, i, word)
	case linkUp:
		return x.connect(w, i, other)
	case linkDown:
		return x.notice(w, i, other)
	case died:
		w.peers[i].died &^= 1 << other
		return x.step(w, i, died, e.number, word)
	case tick:
		return x.pass(w, -1, func(node int) uint64 {
			return event{entropy: e.number>>node&1 != 0}.word()
		})
	case heldUp:
		w.spent.stalls++
		return x.pass(w, i, same)
	case guards:
		w.peers[i].working = true
		w.peers[i].workEnd = x.states[w.peers[i].machine].Leader.LeaseEnd
		return x.step(w, i, guards, 0, word)
	case unguards:
		w.peers[i].working = false
		return x.step(w, i, unguards, 0, word)
	case ordered:
		w.spent.orders++
		return x.step(w, i, ordered, e.number, word)
	case crashes, crashesWritten:
		w.spent.crashes++
		if e.what == crashesWritten {
			w.peers[i].disk = w.peers[i].writing
		}
		x.end(w, i)
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
	}
	return nil
}

// find is where a parcel is in the traffic.
func (x *search) find(w *snapshot, number uint16) int {
	for i, t := range w.traffic.flights[:w.traffic.n] {
		if t.number == number {
			return i
		}
	}
	panic("not on its way")
}

// each calls found with every state that may follow upon one, and what was done to reach it.
func (x *search) each(w *snapshot, found func(e event, w snapshot, err error)) {
	try := func(e event) {
		next := *w
		err := x.do(&next, e)
		found(e, next, err)
	}
	for _, t := range w.traffic.flights[:w.traffic.n] {
		to := int8(x.parcels[t.number].to)
		x.drawn(event{what: received, node: to, number: t.number}, try)
		if int(w.spent.twins) < x.twins {
			try(event{what: receivedTwice, node: to, number: t.number})
		}
	}
	for i := range x.nodes {
		if w.peers[i].machine < 0 {
			try(event{what: starts, node: int8(i)})
			continue
		}
		x.ofProcess(w, int8(i), try)
		for j := range x.nodes {
			if j != i {
				x.ofLink(w, i, j, try)
			}
		}
	}
	x.ofTime(w, try)
}

// drawn tries an event with the shortest and the longest random wait, if there is one.
func (x *search) drawn(e event, try func(event)) {
	try(e)
	if x.timing.MaxRandomWait > 1 && !x.cfgs[e.node].NotCandidate {
		e.entropy = true
		try(e)
	}
}

// ofProcess is what may happen to a process that runs.
func (x *search) ofProcess(w *snapshot, i int8, try func(event)) {
	p := &w.peers[i]
	s := &x.states[p.machine]
	writing := p.writing != (elector.Terms{})
	if writing {
		try(event{what: persisted, node: i})
	}
	switch {
	case s.Role == elector.Dormant && !writing:
		try(event{what: ends, node: i})
	case int(w.spent.crashes) < x.crashes:
		try(event{what: crashes, node: i})
		if writing {
			try(event{what: crashesWritten, node: i})
		}
	}
	idle := !p.working && !s.Leader.Working && s.Leader.Handover == (elector.Handover{})
	if x.guard && s.Role == elector.Leader && idle && s.Leader.LeaseEnd > x.clock(int(i), w.now) {
		try(event{what: guards, node: i})
	}
	if p.working {
		try(event{what: unguards, node: i})
	}
	if int(w.spent.orders) < x.ordered && s.Role != elector.Dormant {
		for number := range x.orders {
			x.drawn(event{what: ordered, node: i, number: uint16(number)}, try)
		}
	}
}

// ofLink is what may happen to a link, as seen by one end that runs.
func (x *search) ofLink(w *snapshot, i, j int, try func(event)) {
	p, q := &w.peers[i], &w.peers[j]
	e := event{node: int8(i), number: uint16(j)}
	switch {
	case p.down>>j&1 != 0:
		e.what = linkDown
		try(e)
	case p.died>>j&1 != 0:
		e.what = died
		x.drawn(e, try)
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
	case int(w.spent.cuts) < x.cuts:
		e.what = cuts
	default:
		return
	}
	try(e)
}

// ofTime lets a quantum pass. The random waits of nodes differ, or not.
func (x *search) ofTime(w *snapshot, try func(event)) {
	for i := range x.nodes {
		if int(w.peers[i].waits) >= x.life && w.peers[i].machine >= 0 {
			return // the disk is slower than the scene allows
		}
	}
	try(event{what: tick, node: -1})
	if x.timing.MaxRandomWait > 1 {
		for set := range uint16(1)<<x.nodes - 1 {
			try(event{what: tick, node: -1, number: set + 1})
		}
	}
	for i := range x.nodes {
		if int(w.spent.stalls) < x.stalls && w.peers[i].machine >= 0 && !w.peers[i].behind {
			try(event{what: heldUp, node: int8(i)})
		}
	}
}
