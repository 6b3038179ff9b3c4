package elector_test

import (
	"errors"
	"fmt"
	"slices"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/elector/spec"
	"github.com/bmqelect/bmqelect/lsn"
)

// step steps a node's machine, and does what it asks for. number is that of the parcel, the peer
// or the order that it is about.
func (x *search) step(w *snapshot, node int, what deed, number uint16, entropy uint64) error {
	p := &w.peers[node]
	if p.behind {
		p.behind = false
		if err := x.step(w, node, heldUp, 0, entropy); err != nil {
			return err
		}
	}
	if what == starts || what == persisted {
		number = uint16(p.disk.Entered)<<8 | uint16(p.disk.Reserved)
	}
	key := stepKey{p.machine, w.now, entropy, what, number}
	done, ok := x.steps[key]
	if !ok {
		m := x.machines[p.machine].Clone()
		e := m.Step(x.clock(node, w.now), entropy, x.input(p, node, what, number))
		at := x.number(node, m)
		if err := x.elected(&x.states[at], e.Transitions); err != nil {
			return err
		}
		e.Messages, e.Transitions = slices.Clone(e.Messages), nil
		if err := spec.Consistent(&x.states[at]); err != nil {
			return err
		}
		for i := range e.Messages {
			if err := spec.True(&x.states[at], &e.Messages[i]); err != nil {
				return err
			}
		}
		done = stepped{at, e}
		x.steps[key] = done
	}
	p.machine = done.machine
	if err := x.tendWork(w, node, &done.effects); err != nil {
		return err
	}
	if done.effects.Persist != (elector.Terms{}) {
		p.writing, p.waits = done.effects.Persist, 0
	}
	for i := range done.effects.Messages {
		if err := x.send(w, node, &done.effects.Messages[i]); err != nil {
			return err
		}
	}
	return nil
}

// elected checks that a lease outlasts the first heartbeat period of a leadership: §5.4.
func (x *search) elected(s *elector.State, transitions []elector.Transition) error {
	least := s.Now.Add(x.timing.HeartbeatBroadcast)
	for _, tr := range transitions {
		if tr.Reason == elector.Elected && s.Leader.LeaseEnd < least {
			return fmt.Errorf("%s is elected at %s with a lease until %s only", tr.Leader, s.Now,
				s.Leader.LeaseEnd)
		}
	}
	return nil
}

// send checks a message that leaves a node, and puts it on its way over every link that is up.
func (x *search) send(w *snapshot, node int, out *elector.Envelope) error {
	p, msg := &w.peers[node], &out.Message
	if msg.Term > p.disk.Reserved {
		return fmt.Errorf("%s sent %s, but has %+v on its disk", x.voters[node], out, p.disk)
	}
	for to, id := range x.voters {
		if to == node || out.To != id && out.To != elector.AllMembers {
			continue
		}
		switch {
		case msg.Kind == elector.ElectionProposal:
			if err := x.voted(p, node, msg.Term, node); err != nil {
				return err
			}
		case msg.Kind == elector.ElectionProposalResponse && msg.WillVote:
			if err := x.voted(p, node, msg.Term, to); err != nil {
				return err
			}
		}
		both := p.linked >> to & (w.peers[to].linked >> node) & 1
		if both == 0 || w.cut>>x.pair(node, to)&1 != 0 {
			continue
		}
		x.put(w, parcel{node, to, *msg})
	}
	return nil
}

// voted notes a vote, which must be the only one of its term, over all processes of the node.
func (x *search) voted(p *peer, node int, term lsn.Term, to int) error {
	if term >= mostTerms {
		return nil // such a state is not followed
	}
	before := p.votes[term]
	if before != 0 && before != uint8(to+1) {
		return fmt.Errorf("%s voted in term %d for %s and for %s",
			x.voters[node], term, x.voters[before-1], x.voters[to])
	}
	p.votes[term] = uint8(to + 1)
	return nil
}

// put puts a parcel on its way. A newer one takes the place of one of its kind on the same link.
func (x *search) put(w *snapshot, p parcel) {
	number, ok := x.parcelNo[p]
	if !ok {
		number = uint16(len(x.parcels))
		x.parcelNo[p] = number
		x.parcels = append(x.parcels, p)
	}
	x.drop(w, func(old *parcel) bool {
		return old.from == p.from && old.to == p.to && old.msg.Kind == p.msg.Kind
	})
	w.traffic.add(flight{number, 0})
}

// add adds a flight in its place.
func (tr *traffic) add(t flight) {
	i := tr.n
	for ; i > 0 && t.less(tr.flights[i-1]); i-- {
		tr.flights[i] = tr.flights[i-1]
	}
	tr.flights[i] = t
	tr.n++
}

// remove takes a flight out of its place.
func (tr *traffic) remove(at int) flight {
	t := tr.flights[at]
	copy(tr.flights[at:tr.n], tr.flights[at+1:tr.n])
	tr.n--
	tr.flights[tr.n] = flight{}
	return t
}

func (t flight) less(u flight) bool {
	return t.number < u.number || t.number == u.number && t.age < u.age
}

// drop loses what is on its way, if it goes.
func (x *search) drop(w *snapshot, goes func(p *parcel) bool) {
	for i := w.traffic.n - 1; i >= 0; i-- {
		if goes(&x.parcels[w.traffic.flights[i].number]) {
			w.traffic.remove(i)
		}
	}
}

// dropBetween loses what is on its way between two nodes.
func (x *search) dropBetween(w *snapshot, a, b int) {
	x.drop(w, func(p *parcel) bool { return between(p.from, p.to, a, b) })
}

// pair numbers two nodes.
func (x *search) pair(a, b int) int { return max(a, b)*maxVoters + min(a, b) - maxVoters }

// connect makes a link between two processes. Each end first notices that the one before is
// gone; a death that is not proven by now never is.
func (x *search) connect(w *snapshot, a, b int) error {
	x.dropBetween(w, a, b)
	for _, ends := range [][2]int{{a, b}, {b, a}} {
		p := &w.peers[ends[0]]
		p.died &^= 1 << ends[1]
		if p.linked>>ends[1]&1 != 0 {
			if err := x.notice(w, ends[0], ends[1]); err != nil {
				return err
			}
		}
	}
	w.peers[a].linked |= 1 << b
	w.peers[b].linked |= 1 << a
	return errors.Join(x.step(w, a, linkUp, uint16(b), lowest),
		x.step(w, b, linkUp, uint16(a), lowest))
}

// notice lets a node find that its link to another is gone.
func (x *search) notice(w *snapshot, node, other int) error {
	p := &w.peers[node]
	p.linked &^= 1 << other
	p.down &^= 1 << other
	x.drop(w, func(p *parcel) bool { return p.from == other && p.to == node })
	return x.step(w, node, linkDown, uint16(other), lowest)
}

// end ends the process of a node.
func (x *search) end(w *snapshot, node int) {
	p := &w.peers[node]
	p.machine, p.writing, p.waits, p.working, p.behind = -1, elector.Terms{}, 0, false, false
	for other := range x.nodes {
		if q := &w.peers[other]; q.linked>>node&1 != 0 {
			q.down |= 1 << node
			q.died |= 1 << node
		}
	}
	p.linked, p.down, p.died = 0, 0, 0
	x.drop(w, func(p *parcel) bool { return p.to == node })
}

// pass lets a quantum pass for all except one node, which does not run; -1 for none.
func (x *search) pass(w *snapshot, asleep int, entropy func(node int) uint64) error {
	w.now++
	for i := range x.nodes {
		if p := &w.peers[i]; p.writing != (elector.Terms{}) {
			p.waits++
		}
	}
	for i := w.traffic.n - 1; i >= 0; i-- {
		if t := &w.traffic.flights[i]; int(t.age) < x.life {
			t.age++
		} else {
			w.traffic.remove(i)
		}
	}
	for node := range x.nodes {
		p := &w.peers[node]
		if p.machine < 0 {
			continue
		}
		if node == asleep {
			p.behind = true
			continue
		}
		if err := x.step(w, node, tick, 0, entropy(node)); err != nil {
			return err
		}
	}
	for node := range x.nodes {
		if p := &w.peers[node]; p.working && x.clock(node, w.now) >= p.workEnd {
			p.working = false // whoever does it has let it end in time
		}
	}
	return nil
}

// tendWork follows the guarded work of a node after a step.
func (x *search) tendWork(w *snapshot, node int, e *elector.Effects) error {
	p := &w.peers[node]
	if !p.working {
		return nil
	}
	s := &x.states[p.machine]
	if s.Role == elector.Leader {
		p.workEnd = s.Leader.LeaseEnd
		if s.Leader.Handover.Stopping {
			p.workEnd = s.Leader.Handover.End
		}
	}
	for _, out := range e.Messages {
		given := out.Message.Kind == elector.LeadershipCession && out.Message.Successor != ""
		if given && x.clock(node, w.now) < p.workEnd {
			return fmt.Errorf("%s cedes while its guarded work goes on: %s", x.voters[node], out)
		}
	}
	return nil
}

// check holds a state against the promises to users.
func (x *search) check(w *snapshot) error {
	holder, worker, led := -1, -1, w.led
	for i := range x.nodes {
		p := &w.peers[i]
		if p.working && worker >= 0 {
			return fmt.Errorf("guarded work of %s and %s overlaps", x.voters[worker], x.voters[i])
		}
		if p.working {
			worker = i
		}
		if p.machine < 0 {
			continue
		}
		s := &x.states[p.machine]
		if s.Role != elector.Leader || s.Leader.LeaseEnd <= x.clock(i, w.now) {
			continue
		}
		term := s.Leader.Term
		if term >= mostTerms {
			continue
		}
		first := &w.leaders[term]
		if *first != 0 && *first != uint8(i+1) {
			return fmt.Errorf("%s leads in term %d, in which %s led", x.voters[i], term,
				x.voters[*first-1])
		}
		if holder >= 0 {
			return fmt.Errorf("%s and %s have valid leases", x.voters[holder], x.voters[i])
		}
		if term < led {
			return fmt.Errorf("%s leads in term %d after another in %d", x.voters[i], term, led)
		}
		if err := x.chosen(w, i, term); err != nil {
			return err
		}
		if err := x.backed(w, i, s.Leader.LeaseEnd); err != nil {
			return err
		}
		*first, holder, w.led = uint8(i+1), i, term
	}
	return nil
}

// chosen checks that a quorum voted for a leader in its term: §5.4, §7.11.
func (x *search) chosen(w *snapshot, leader int, term lsn.Term) error {
	votes := 0
	for i := range x.nodes {
		if w.peers[i].votes[term] == uint8(leader+1) {
			votes++
		}
	}
	if votes < elector.Majority(x.nodes) {
		return fmt.Errorf("%s leads in term %d, in which only %d voted for it", x.voters[leader],
			term, votes)
	}
	return nil
}

// backed checks that a quorum is bound to a leader for as long as its lease, in true time. A
// voter that is down or has just started is bound by its embargo.
func (x *search) backed(w *snapshot, leader int, end elector.Time) error {
	left := float64(end-x.clock(leader, w.now)) / float64(x.rate(leader))
	backing := 0
	for v := range x.nodes {
		p := &w.peers[v]
		if v == leader || p.machine < 0 {
			backing++
			continue
		}
		s := &x.states[p.machine]
		until := s.EmbargoEnd
		if s.Promise.To == x.voters[leader] {
			until = max(until, s.Promise.Until)
		}
		if float64(until-x.clock(v, w.now))/float64(x.rate(v)) >= left {
			backing++
		}
	}
	if backing < elector.Majority(x.nodes) {
		return fmt.Errorf("%s has a lease for %.2f quanta, but only %d voters are bound for so long",
			x.voters[leader], left, backing)
	}
	return nil
}

// lowest and highest are words of entropy whose first draw is as low or high as can be.
var lowest, highest = extremes()

// extremes looks for them: the draw is the finaliser of splitmix64 of the word.
func extremes() (low, high uint64) {
	least, most := ^uint64(0), uint64(0)
	for word := range uint64(1 << 22) {
		z := word + 0x9e3779b97f4a7c15
		z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		z ^= z >> 31
		if z < least {
			least, low = z, word
		}
		if z > most {
			most, high = z, word
		}
	}
	return low, high
}

// liveSample is of how many states one is tried for liveness.
const liveSample = 256

// lives returns why no leader is reached if nothing goes wrong from here on; nil if one is.
func (x *search) lives(w snapshot) error {
	mix := func(node int) uint64 { return uint64(w.now)*7919 + uint64(node)*104729 }
	return x.calm(&w, mix)
}

var errNobodyLeads = errors.New("nobody ever leads")

// calm lets quanta pass in which all that is down comes up and all that is sent arrives, until
// all follow one leader.
func (x *search) calm(w *snapshot, entropy func(node int) uint64) error {
	w.cut = 0
	for range maxQuanta {
		for i := range x.nodes {
			p := &w.peers[i]
			if p.machine >= 0 && x.states[p.machine].Role == elector.Dormant {
				x.end(w, i)
			}
			if p.machine < 0 {
				if err := x.boot(w, i, entropy(i)); err != nil {
					return err
				}
			}
		}
		if err := x.connectAll(w); err != nil {
			return err
		}
		if err := x.settle(w, entropy); err != nil {
			return err
		}
		if err := x.pass(w, -1, entropy); err != nil {
			return err
		}
		if err := x.settle(w, entropy); err != nil {
			return err
		}
		if x.agreed(w) {
			return nil
		}
	}
	return errNobodyLeads
}

// connectAll makes every link that is not up.
func (x *search) connectAll(w *snapshot) error {
	for i := range x.nodes {
		for j := range i {
			p, q := &w.peers[i], &w.peers[j]
			both := p.linked >> j & 1 & (q.linked >> i)
			if both != 0 && p.down>>j&1 == 0 && q.down>>i&1 == 0 {
				continue
			}
			if err := x.connect(w, i, j); err != nil {
				return err
			}
		}
	}
	return nil
}

// maxQuanta is far more than any timer of a scene.
const maxQuanta = 400

// settle lets all arrive that is on its way, and all be written.
func (x *search) settle(w *snapshot, entropy func(node int) uint64) error {
	for range 100 {
		for i := range x.nodes {
			if p := &w.peers[i]; p.writing != (elector.Terms{}) {
				if err := x.persisted(w, i, entropy(i)); err != nil {
					return err
				}
			}
		}
		if w.traffic.n == 0 {
			return nil
		}
		if err := x.deliver(w, 0, entropy); err != nil {
			return err
		}
	}
	return nil
}

// agreed reports whether all voters that run follow one leader.
func (x *search) agreed(w *snapshot) bool {
	leader, followers := -1, 0
	for i := range x.nodes {
		s := &x.states[w.peers[i].machine]
		switch {
		case s.Role == elector.Leader:
			leader = i
		case s.Follower.Leader != "":
			followers++
		}
	}
	return leader >= 0 && followers == x.nodes-1
}

// deliver lets the parcel at an index of the traffic arrive.
func (x *search) deliver(w *snapshot, at int, entropy func(int) uint64) error {
	number := w.traffic.remove(at).number
	to := x.parcels[number].to
	return x.step(w, to, received, number, entropy(to))
}

// persisted lets a write end.
func (x *search) persisted(w *snapshot, node int, entropy uint64) error {
	p := &w.peers[node]
	p.disk, p.writing, p.waits = p.writing, elector.Terms{}, 0
	return x.step(w, node, persisted, 0, entropy)
}
