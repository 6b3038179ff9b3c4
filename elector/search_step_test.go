package elector_test

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/elector/spec"
	"github.com/bmqelect/bmqelect/lsn"
)

// step steps a node's machine, and carries out the effects. number identifies the parcel, the peer
// or the order.
func (x *search) step(w *snapshot, node int, what deed, number uint32, longest bool) error {
	p := &w.peers[node]
	if p.behind { // its clock goes on before it wakes
		p.behind = false
		late := uint32(truth(what == tick && number == 0))
		if err := x.step(w, node, heldUp, late, false); err != nil {
			return err
		}
		number |= late
	}
	if x.pairs && what != sleeps && (x.broken != leaveUnwritten || what != received) {
		goesOn := uint32(0)
		if what == tick && number == 0 || what == heldUp && number != 0 {
			goesOn = later
		}
		if what, _ := x.owed(w, node); goesOn != 0 && what != tick {
			number ^= 1 // the clock goes on before that
		}
		if err := x.bringUpToDate(w, node, goesOn); err != nil {
			return err
		}
	}
	if err := x.stepOnce(w, node, what, number, longest); err != nil || !x.pairs || what == sleeps {
		return err
	}
	return x.bringUpToDate(w, node, 0)
}

// stepOnce steps a node's machine, which knows all that beats have brought.
func (x *search) stepOnce(w *snapshot, node int, what deed, number uint32, longest bool) error {
	p, ledIn := &w.peers[node], x.leadTerm(w, node)
	key := stepKey{p.machine, number, what, longest}
	done, ok := x.steps[key]
	if !ok {
		var err error
		if done, err = x.stepAnew(w, node, key); err != nil {
			return err
		}
		x.steps[key] = done
	}
	before := p.machine
	if p.machine != done.machine {
		p.machine = done.machine
		x.purge(w, node)
	}
	if err := x.tendRecord(w, node, before, done.persist.record); err != nil {
		return err
	}
	if err := x.tendWork(w, node, done.names); err != nil {
		return err
	}
	if x.ordered > 0 {
		s := x.state(w, node)
		p.pausedFor, p.led = max(s.PauseEnd-noon(node), 0), s.PauseEnd > noon(node) && s.Turns.LedLast
	}
	if done.persist != (disk{}) {
		before := p.writing.record
		p.writing, p.waits = done.persist, 0
		p.writing.record = cmp.Or(p.writing.record, before)
	}
	for i := range done.sent {
		if out := &done.sent[i]; x.pairs && out.repeats &&
			x.told(w, node, x.parcels[out.parcel].to, out.term) {
			continue
		}
		if err := x.send(w, node, &done.sent[i]); err != nil {
			return err
		}
	}
	if x.pairs && what != sleeps {
		if err := x.tend(w, node, ledIn, &done); err != nil {
			return err
		}
	}
	for _, peer := range done.joined {
		if p.linked>>peer&1 != 0 {
			if err := x.step(w, node, linkUp, uint32(peer), false); err != nil {
				return err
			}
		}
	}
	return nil
}

// purge removes the messages to a node that are over.
func (x *search) purge(w *snapshot, node int) {
	for i := w.traffic.n - 1; i >= 0 && !x.keeps; i-- {
		number := w.traffic.flights[i].number
		if x.parcels[number].to == node && x.over(w, node, number) {
			w.traffic.remove(i)
		}
	}
}

// over reports whether a message can be dropped because it will never change anything.
func (x *search) over(w *snapshot, node int, number uint32) bool {
	at := w.peers[node].machine
	if x.parcels[number].kind != 0 {
		return false
	}
	key := stepKey{machine: at, number: number}
	over, known := x.overs[key]
	if known {
		return over
	}
	over = x.mayBeOver(x.state(w, node), &x.parcels[number].msg)
	for late := elector.Time(0); over && late <= elector.Time(x.life); late++ {
		since := late * x.rate(node)
		step := func(in elector.Input) (machineKey, elector.Effects) {
			m := x.blank(w, node).At(x.machines[at].state, x.held[at])
			e := m.Step(noon(node)+since, lowest, in)
			key, _ := x.alike(node, w.peers[node].lives, m, since)
			return key, e
		}
		a, does := step(x.input(node, received, number))
		b, would := step(elector.Tick{})
		over = a == b && does.Persist == would.Persist &&
			slices.Equal(does.Messages, would.Messages)
	}
	x.overs[key] = over
	return over
}

// mayBeOver reports whether a message that changes nothing now never will. It must ask for nothing,
// and be about no term above the voter's own, which never falls.
func (x *search) mayBeOver(s *elector.State, m *elector.Message) bool {
	accepted := s.Record.Accepted.LSN
	switch {
	case m.Kind == elector.RecordOffer:
		return m.Record.Less(accepted)
	case !m.WillVote && accepted.Less(m.Record):
		return false // it may be requested
	case max(m.Term, m.ProposedTerm) > s.Term:
		return false
	case m.Kind == elector.HeartbeatAck:
		return !x.names() || s.Leader.Term != m.Term // it says who is fit
	case m.Kind == elector.ElectionProposalResponse:
		return !x.names() || m.WillVote
	case m.Kind == elector.LeadershipCession:
		return s.Role == elector.Follower
	}
	return m.Kind == elector.ElectionScoutingResponse || m.Kind == elector.InvalidHeartbeat ||
		m.Kind == elector.RecordAck
}

// stepAnew steps a machine, and checks what comes of it.
func (x *search) stepAnew(w *snapshot, node int, key stepKey) (done stepped, err error) {
	m := x.blank(w, node).At(x.machines[key.machine].state, x.held[key.machine])
	since, word := elector.Time(0), lowest
	switch {
	case key.what == sleeps, key.what == tick && key.number == 0,
		key.what == heldUp && key.number != 0,
		(key.what == carries || key.what == backs) && key.number&later != 0:
		since = x.rate(node)
	}
	if key.what == sleeps {
		return stepped{machine: x.number(w, node, m, since)}, nil
	}
	if key.longest {
		word = highest
	}
	e := m.Step(noon(node)+since, word, x.input(node, key.what, key.number))
	s := m.State()
	if err := cmp.Or(x.elected(&s, e.Transitions), spec.Consistent(&s)); err != nil {
		return done, err
	}
	done = stepped{machine: x.number(w, node, m, since), persist: disk{
		uint8(e.Persist.Entered), uint8(e.Persist.Reserved), x.record(e.Accept),
	}}
	pairing, fresh := m.Pairing()
	done.leader, done.leaderTerm = int8(slices.Index(x.voters, pairing.Leader)), pairing.Term
	done.fresh = fresh
	for _, id := range e.Joined {
		done.joined = append(done.joined, slices.Index(x.voters, id))
	}
	x.due[done.machine] = e.Wake <= noon(node)+since
	for i := range e.Messages {
		out := &e.Messages[i]
		if err := spec.True(&s, out); err != nil {
			return done, err
		}
		msg := &out.Message
		done.names = done.names || msg.Kind == elector.LeadershipCession && msg.Successor != ""
		for to, id := range x.voters {
			if to == node || out.To != id && out.To != elector.AllMembers {
				continue
			}
			p := parcel{from: node, to: to, lives: w.peers[node].lives, msg: *msg}
			sent := sent{x.parcel(p, since != 0), msg.Term, -1, out.Repeats}
			done.repeats = done.repeats || out.Repeats
			switch {
			case msg.Kind == elector.ElectionProposal:
				sent.vote = node
			case msg.Kind == elector.ElectionProposalResponse && msg.WillVote:
				sent.vote = to
			}
			done.sent = append(done.sent, sent)
		}
	}
	return done, nil
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

// send checks a message that leaves a node, and puts it on its way if its link is up.
func (x *search) send(w *snapshot, node int, out *sent) error {
	p, to := &w.peers[node], x.parcels[out.parcel].to
	if out.term > lsn.Term(p.disk.reserved) {
		return fmt.Errorf("%s sent %s, but has %+v on its disk", x.voters[node],
			x.parcels[out.parcel].msg, p.disk)
	}
	if out.vote >= 0 {
		if err := x.voted(p, node, out.term, out.vote); err != nil {
			return err
		}
	}
	if err := x.supports(w, node, to, out); err != nil {
		return err
	}
	both := p.linked >> to & (w.peers[to].linked >> node) & 1
	if both != 0 && w.cut>>x.pair(node, to)&1 == 0 {
		x.replaced = w.traffic.put(flight{x.lanes[out.parcel], 0, out.parcel}) || x.replaced
		x.purge(w, to)
	}
	return nil
}

// supports checks that a node which forgot a vote in a crash supports no leader of a lower term
// before one promise's time is over: that vote may be about to elect another, §3.1. It never
// acknowledges a record of that leader so that it counts: §15.2.
func (x *search) supports(w *snapshot, node, to int, out *sent) error {
	msg := &x.parcels[out.parcel].msg
	counts := msg.Record.Term == msg.Term && msg.Entered <= msg.Term
	switch {
	case (msg.Kind == elector.HeartbeatAck || msg.Kind == elector.RecordAck) && counts:
	case msg.Kind != elector.HeartbeatAck || x.state(w, node).EmbargoEnd <= noon(node):
		return nil
	}
	for term := out.term + 1; term < mostTerms; term++ {
		if voted := w.peers[node].votes.of(term); voted >= 0 && voted != to {
			return fmt.Errorf("%s supports %s in term %d, and has voted for %s in term %d",
				x.voters[node], x.voters[to], out.term, x.voters[voted], term)
		}
	}
	return nil
}

// voted notes a vote, which must be the only one of its term, over all processes of the node.
func (x *search) voted(p *peer, node int, term lsn.Term, to int) error {
	if term >= mostTerms {
		return nil // such a state is not followed
	}
	if before := p.votes.of(term); before >= 0 && before != to {
		return fmt.Errorf("%s voted in term %d for %s and for %s",
			x.voters[node], term, x.voters[before], x.voters[to])
	}
	p.votes.set(term, to)
	return nil
}

// parcel is the number of a parcel, perhaps a quantum later.
func (x *search) parcel(p parcel, quantum bool) uint32 {
	p = x.aged(p, quantum)
	number, ok := x.parcelNo[p]
	if !ok {
		number = uint32(len(x.parcels))
		x.parcelNo[p] = number
		x.parcels, x.later = append(x.parcels, p), append(x.later, 0)
		kind := cmp.Or(p.kind, uint8(p.msg.Kind))
		x.lanes = append(x.lanes, uint16(p.from*maxVoters+p.to)<<4|uint16(kind))
	}
	return number
}

// put puts a flight in its place. A newer parcel takes the place of one of its kind on the link; it
// returns whether that was another.
func (tr *traffic) put(f flight) (replaced bool) {
	at := 0
	for at < tr.n && tr.flights[at].lane < f.lane {
		at++
	}
	if at == tr.n || tr.flights[at].lane != f.lane {
		copy(tr.flights[at+1:tr.n+1], tr.flights[at:tr.n])
		tr.n++
	}
	replaced = tr.flights[at].lane == f.lane && tr.flights[at] != f
	tr.flights[at] = f
	return replaced
}

// remove takes a flight out of its place.
func (tr *traffic) remove(at int) {
	tr.n--
	copy(tr.flights[at:tr.n], tr.flights[at+1:tr.n+1])
	tr.flights[tr.n] = flight{}
}

// drop loses the parcels on their way for which goes reports true.
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
	x.dropChanges(w, a, b)
	x.dropChanges(w, b, a)
}

// between reports whether a message goes one way or the other between two voters.
func between(from, to, a, b int) bool { return from == a && to == b || from == b && to == a }

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
	x.open(w, a, b)
	x.open(w, b, a)
	return errors.Join(x.step(w, a, linkUp, uint32(b), false),
		x.step(w, b, linkUp, uint32(a), false))
}

// notice lets a node notice that its link to another one is gone.
func (x *search) notice(w *snapshot, node, other int) error {
	p := &w.peers[node]
	p.linked &^= 1 << other
	p.down &^= 1 << other
	x.drop(w, func(p *parcel) bool { return p.from == other && p.to == node })
	if err := x.close(w, node, other); err != nil {
		return err
	}
	return x.step(w, node, linkDown, uint32(other), false)
}

// end ends the process of a node.
func (x *search) end(w *snapshot, node int) {
	p := &w.peers[node]
	p.machine, p.writing, p.waits, p.behind = -1, disk{}, 0, false
	p.working, p.workEnd = false, 0
	for other := range x.nodes {
		if q := &w.peers[other]; q.linked>>node&1 != 0 {
			q.down |= 1 << node
			q.died |= 1 << node
		}
	}
	p.linked, p.down, p.died, p.glue = 0, 0, 0, 0
	x.drop(w, func(p *parcel) bool { return p.to == node })
}

// pass lets a quantum pass for all except one node, which does not run; -1 for none. The random
// waits of the nodes of a set are long.
func (x *search) pass(w *snapshot, asleep int, longest uint32) error {
	for i := w.traffic.n - 1; i >= 0; i-- {
		f := &w.traffic.flights[i]
		if f.age >= x.life {
			w.spent.misses += truth(x.reliable)
			w.traffic.remove(i)
			continue
		}
		f.age++
		if x.later[f.number] == 0 {
			x.later[f.number] = x.parcel(x.parcels[f.number], true)
		}
		f.number = x.later[f.number]
	}
	if x.pairs {
		x.passPairs(w, asleep)
	}
	for node := range x.nodes {
		p := &w.peers[node]
		if p.writing != (disk{}) {
			p.waits++
		}
		p.workEnd = max(p.workEnd-x.rate(node), 0)
		if p.machine < 0 {
			p.pausedFor = max(p.pausedFor-x.rate(node), 0)
			continue
		}
		what := tick
		if node == asleep {
			what = sleeps
		}
		if err := x.step(w, node, what, 0, longest>>node&1 != 0); err != nil {
			return err
		}
		p.behind = node == asleep
	}
	for node := range x.nodes {
		if x.pairs && node != asleep && w.peers[node].machine >= 0 {
			if err := x.tickPairs(w, node); err != nil {
				return err
			}
		}
	}
	for node := range x.nodes {
		if p := &w.peers[node]; p.workEnd == 0 {
			p.working = false // whoever does it has let it end in time
		}
	}
	return nil
}

// tendWork follows the guarded work of a node after a step, in which it may have named its
// successor.
func (x *search) tendWork(w *snapshot, node int, names bool) error {
	p := &w.peers[node]
	if !p.working {
		return nil
	}
	if names && p.workEnd > 0 {
		return fmt.Errorf("%s cedes while its guarded work goes on", x.voters[node])
	}
	s := x.state(w, node)
	if s.Role == elector.Leader {
		p.workEnd = s.Leader.LeaseEnd - noon(node)
		if s.Leader.Handover.Stopping {
			p.workEnd = s.Leader.Handover.End - noon(node)
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
		s := x.effective(w, i)
		if s.Role != elector.Leader || s.Leader.LeaseEnd <= noon(i) {
			continue
		}
		term := s.Leader.Term
		if term >= mostTerms {
			continue
		}
		first := w.leaders.of(term)
		if first >= 0 && first != i {
			return fmt.Errorf("%s leads in term %d, in which %s led", x.voters[i], term,
				x.voters[first])
		}
		if holder >= 0 {
			return fmt.Errorf("%s and %s have valid leases", x.voters[holder], x.voters[i])
		}
		if term < led {
			return fmt.Errorf("%s leads in term %d after another in %d", x.voters[i], term, led)
		}
		if holder, w.led = i, term; x.leases {
			continue
		}
		err := cmp.Or(x.backed(w, i, s.Leader.LeaseEnd), x.reads(w, i))
		if first < 0 { // the voters may change later
			err = cmp.Or(x.chosen(w, i, term), err)
		}
		if err != nil {
			return err
		}
		w.leaders.set(term, i)
	}
	return x.remembered(w)
}

// chosen checks that a quorum voted for a leader in its term: §5.4, §7.11.
func (x *search) chosen(w *snapshot, leader int, term lsn.Term) error {
	votes := 0
	counts, quorum := x.counted(w, leader)
	for i := range x.nodes {
		alone := quorum == 1 && i == leader // it proposes itself to nobody
		voted := alone || w.peers[i].votes.of(term) == leader
		gone := !counts(i) && x.backs(w, leader, i) // it lost its disk, and may have voted before
		if gone || counts(i) && voted {
			votes++
		}
	}
	if votes < quorum {
		return fmt.Errorf("%s leads in term %d, in which only %d voted for it", x.voters[leader],
			term, votes)
	}
	return nil
}

// backed checks that a quorum is bound to a leader for as long as its lease, in true time. A
// voter that is down or has just started is bound by its embargo.
func (x *search) backed(w *snapshot, leader int, end elector.Time) error {
	left := float64(end-noon(leader)) / float64(x.rate(leader))
	if x.state(w, leader).Leader.Writing.Kept >= end {
		return nil // the voters before the last change back it
	}
	backing := 0
	_, quorum := x.counted(w, leader)
	for v := range x.nodes {
		if !x.backs(w, leader, v) {
			continue
		}
		if v == leader || w.peers[v].machine < 0 || x.state(w, v).Role == elector.Dormant {
			backing++
			continue
		}
		s := x.effective(w, v)
		until := s.EmbargoEnd
		if s.Promise.To == x.voters[leader] {
			until = max(until, s.Promise.Until)
		}
		if float64(until-noon(v))/float64(x.rate(v)) >= left {
			backing++
		}
	}
	if backing < quorum {
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
