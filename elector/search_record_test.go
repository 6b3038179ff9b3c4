package elector_test

import (
	"fmt"
	"maps"
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/lsn"
)

// history is what was written and committed: what must hold of it depends on nothing that a
// machine says of itself.
type history struct {
	committed uint8 // the newest
	n         uint8
	written   [mostRecords]written // in order of LSNs; without the ancestors of committed, and it
}

// written is a record that a leader wrote.
type written struct {
	lsn    uint8
	from   uint8 // what the leader had accepted
	record uint16
}

const mostRecords = 16

// small is an LSN in less space.
func small(n lsn.LSN) uint8 { return uint8(n.Term)<<4 | uint8(n.Counter) }

// keepsRecords reports whether records occur in this scene.
func (x *search) keepsRecords() bool { return x.recorded || len(x.asks) > 0 }

// record is the number of a record.
func (x *search) record(r elector.Record) uint16 {
	number, ok := x.recordNo[r]
	if !ok {
		number = uint16(len(x.records))
		x.recordNo[r] = number
		x.records = append(x.records, &r)
	}
	return number
}

// identity is that of a node's disk, after it has lost so many.
func identity(node int, lives uint8) elector.Identity {
	return elector.Identity{byte('a' + node), lives}
}

// newMachine is a machine of a node before its start.
func (x *search) newMachine(node int, id elector.Identity) *elector.Machine {
	bounds := x.bounds
	configured := x.voters
	if x.configured != 0 {
		configured = x.voters[:x.configured]
	}
	if !x.keepsRecords() {
		id = elector.Identity{}
	}
	m, err := elector.New(elector.Config{
		Self: x.voters[node], Voters: configured, Timing: x.timing, Bounds: &bounds,
		NotCandidate: x.stands != nil && !slices.Contains(x.stands, node),
		Quorum:       x.quorum, Identity: id,
	})
	require.NoError(x.t, err)
	if x.inTurn() {
		m.Step(noon(node), 0, elector.Measured{RoundTrip: 1}) // a turn is as short as can be
	}
	return m
}

func (x *search) blank(w *snapshot, node int) *elector.Machine {
	return x.blanks[identity(node, w.peers[node].lives)]
}

// persisted ends a write, and returns what the machine is told of it.
func (p *peer) persisted() uint32 {
	record := p.writing.record
	if record == 0 {
		p.writing.record = p.disk.record
	}
	p.disk, p.writing, p.waits = p.writing, disk{}, 0
	return uint32(record)<<8 | uint32(p.disk.reserved)
}

// settle lets a leader be found, and what it has to do be done.
func (x *search) settle(w *snapshot) {
	x.must(x.calm(w, func(node int) bool { return node > 0 }, func() bool { return false }))
}

// firstRecord lets the leader write one.
func (x *search) firstRecord(w *snapshot) {
	for i := range x.nodes {
		if in := (elector.Publish{Value: value(0)}); x.takes(w, i, in) {
			asks := x.asks
			x.asks = []elector.Input{in}
			x.must(x.step(w, i, asked, 0, false))
			x.asks, x.steps, x.overs = asks, map[stepKey]stepped{}, map[stepKey]bool{}
		}
	}
	x.settle(w)
}

func value(n byte) elector.Value { return elector.Value{Size: 1, Hash: [32]byte{n + 1}} }

// takes reports whether a node does what it is asked.
func (x *search) takes(w *snapshot, node int, in elector.Input) bool {
	s := x.state(w, node)
	if s.Role != elector.Leader {
		return false
	}
	key := stepKey{machine: w.peers[node].machine, number: uint32(w.spent.asked), what: asked}
	if takes, known := x.overs[key]; known {
		return takes
	}
	x.overs[key] = x.wouldTake(w, node, in)
	return x.overs[key]
}

func (x *search) wouldTake(w *snapshot, node int, in elector.Input) bool {
	s := x.state(w, node)
	m := x.blank(w, node).At(*s, nil)
	if change, ok := in.(elector.ChangeVoters); ok {
		return m.Changeable(change) == nil && s.Leader.Writing.Change != change
	}
	return m.Publishable() == nil
}

// tendRecord follows the records through a step.
func (x *search) tendRecord(w *snapshot, node int, before int32, accepted uint16) error {
	was, s := &x.machines[before].state, x.state(w, node)
	if accepted != 0 {
		r := x.records[accepted]
		if err := x.wrote(w, node, was.Record.Accepted.LSN, accepted); err != nil {
			return err
		}
		old := &was.Record.Accepted
		if !old.LSN.Less(r.LSN) || s.Term < r.LSN.Term || old.Founded && r.Lineage != old.Lineage ||
			s.Role == elector.Leader && r.Founded && !old.Founded && s.Record.Shown != *old {
			return fmt.Errorf("%s accepts %s in term %d after %s", x.voters[node], r, s.Term, old)
		}
	}
	shown := small(s.Record.Shown.LSN)
	if shown <= w.records.committed {
		return nil
	}
	if s.Record.Shown.LSN.Term != was.Leader.Term { // it may have stepped down since
		return fmt.Errorf("%s shows %s, which is not committed", x.voters[node], s.Record.Shown)
	}
	return x.commit(w, shown)
}

// wrote notes a record that a leader writes. Others accept only what one wrote.
func (x *search) wrote(w *snapshot, node int, from lsn.LSN, number uint16) error {
	h, s := &w.records, x.state(w, node)
	v := written{small(x.records[number].LSN), small(from), number}
	at, known := slices.BinarySearchFunc(h.written[:h.n], v, func(a, b written) int {
		return int(a.lsn) - int(b.lsn)
	})
	switch leads := s.Role == elector.Leader; {
	case known && (h.written[at].record != number || leads):
		return fmt.Errorf("%s writes %s again: %s", x.voters[node],
			x.records[h.written[at].record], x.records[number])
	case known || v.lsn <= h.committed || !leads:
		return nil
	}
	copy(h.written[at+1:], h.written[at:h.n])
	h.written[at] = v
	h.n++
	return nil
}

// commit notes that a record is committed. Of two committed records the newer one descends from
// the older one: V1 (a).
func (x *search) commit(w *snapshot, n uint8) error {
	h := &w.records
	rest, from := history{committed: n}, n
	for i := int(h.n) - 1; i >= 0; i-- {
		switch v := h.written[i]; {
		case v.lsn == from:
			from = v.from // an ancestor
		default:
			rest.written[rest.n] = v
			rest.n++
		}
	}
	if from > h.committed || from < h.committed && h.committed != 0 {
		return fmt.Errorf("record %d.%d is committed, and does not descend from %d.%d",
			n>>4, n&15, h.committed>>4, h.committed&15)
	}
	slices.Reverse(rest.written[:rest.n])
	*h = rest
	return nil
}

// counted returns who counts for a node, and how many are a quorum, by the record that it accepted.
func (x *search) counted(w *snapshot, node int) (counts func(voter int) bool, quorum int) {
	return x.countedBy(w, &x.state(w, node).Record.Accepted)
}

func (x *search) countedBy(
	w *snapshot, r *elector.Record,
) (counts func(voter int) bool, quorum int) {
	if r.LSN.IsZero() {
		n := x.nodes
		if x.configured != 0 {
			n = x.configured
		}
		return func(v int) bool { return v < n }, elector.Majority(n)
	}
	voters := x.votersOf(r)
	return func(v int) bool { return slices.Contains(voters, x.asVoter(w, v)) },
		elector.Majority(len(voters))
}

func (x *search) votersOf(r *elector.Record) []elector.Voter {
	voters, known := x.rosters[r.Voters]
	if !known {
		voters = r.Voters.Voters()
		x.rosters[r.Voters] = voters
	}
	return voters
}

// backs reports whether a node may back the lease of a leader: one that lost its disk since is
// bound, and is nobody's voter.
func (x *search) backs(w *snapshot, leader, node int) bool {
	for lives := range w.peers[node].lives {
		then := elector.Voter{Node: x.voters[node], Identity: identity(node, lives)}
		if slices.Contains(x.votersOf(&x.state(w, leader).Record.Accepted), then) {
			return true
		}
	}
	counts, _ := x.counted(w, leader)
	return counts(node)
}

func (x *search) asVoter(w *snapshot, node int) elector.Voter {
	return elector.Voter{Node: x.voters[node], Identity: identity(node, w.peers[node].lives)}
}

// reads checks that a leader which may read finds the newest committed record: V3.
func (x *search) reads(w *snapshot, leader int) error {
	s := x.state(w, leader)
	inSync := s.Leader.Writing.InSync || s.Record.Accepted.LSN.IsZero()
	if inSync && small(s.Record.Shown.LSN) != w.records.committed {
		return fmt.Errorf("%s reads %s, but %d.%d is committed", x.voters[leader], s.Record.Shown,
			w.records.committed>>4, w.records.committed&15)
	}
	return nil
}

// remembered checks that no quorum of the voters of the newest committed record can be without it:
// V1 (b).
func (x *search) remembered(w *snapshot) error {
	newest := x.newest(w)
	if newest.LSN.IsZero() {
		return nil
	}
	counts, quorum := x.countedBy(w, newest)
	lack := 0
	for v := range x.nodes {
		if counts(v) && small(x.records[w.peers[v].disk.record].LSN) < w.records.committed {
			lack++
		}
	}
	if lack >= quorum {
		return fmt.Errorf("%s is committed, and %d of its voters do not have it", newest, lack)
	}
	return nil
}

// newest is the newest committed record.
func (x *search) newest(w *snapshot) *elector.Record {
	for i := range x.nodes { // somebody has it
		p := &w.peers[i]
		for _, number := range [...]uint16{p.disk.record, p.writing.record} {
			if small(x.records[number].LSN) == w.records.committed {
				return x.records[number]
			}
		}
		if p.machine >= 0 && small(x.state(w, i).Record.Shown.LSN) == w.records.committed {
			return &x.state(w, i).Record.Shown
		}
	}
	return x.records[0]
}

// electable reports whether somebody must come to lead now that all are up: V4.
func (x *search) electable(w *snapshot) bool {
	if !x.keepsRecords() {
		return true
	}
	up := map[elector.Voter]elector.Record{}
	newest, some := *x.newest(w), false
	for i := range x.nodes {
		r := x.records[w.peers[i].disk.record]
		if p := &w.peers[i]; p.machine >= 0 && x.state(w, i).Role != elector.Dormant {
			r = &x.state(w, i).Record.Accepted
		}
		some = some || !r.LSN.IsZero()
		up[x.asVoter(w, i)] = *r
	}
	if newest.LSN.IsZero() {
		newest.Voters = x.allVoters(w)
	}
	return !some || electable(newest, up)
}

// electable reports V4: whether one of these nodes comes to lead if they are connected and nothing
// goes wrong any more. They are up, with the records that they accepted; committed is the newest
// committed record. It holds if they are a quorum of its voters, and of those of every newer record
// that one of them accepted, and if one of them is in all these sets.
func electable(committed elector.Record, up map[elector.Voter]elector.Record) bool {
	sets := []elector.Roster{committed.Voters}
	for _, r := range up {
		if committed.LSN.Less(r.LSN) {
			sets = append(sets, r.Voters)
		}
	}
	in := map[elector.Voter]int{} // how many of the sets
	for _, set := range sets {
		have := 0
		for _, v := range set.Voters() {
			if _, ok := up[v]; ok && v.Identity != (elector.Identity{}) {
				have++
				in[v]++
			}
		}
		if have < elector.Majority(len(set.Voters())) {
			return false
		}
	}
	return slices.Contains(slices.Collect(maps.Values(in)), len(sets))
}

// allVoters are those of an election without a record.
func (x *search) allVoters(w *snapshot) elector.Roster {
	var voters []elector.Voter
	counts, _ := x.countedBy(w, x.records[0])
	for i := range x.nodes {
		if counts(i) {
			voters = append(voters, x.asVoter(w, i))
		}
	}
	return elector.NewRoster(voters...)
}

// settled reports whether a leader has nothing to do: its record is committed, all have it, the
// voters have identities, and no change of voters waits.
func (x *search) settled(w *snapshot, leader int) bool {
	l := x.state(w, leader)
	r := l.Record.Accepted
	if r.LSN.IsZero() {
		return !l.Leader.Writing.Begin && l.Leader.Writing.Change == (elector.ChangeVoters{})
	}
	for _, v := range r.Voters.Voters() {
		if v.Identity == (elector.Identity{}) {
			return false
		}
	}
	for i := range x.nodes {
		if s := x.state(w, i); s.Record.Shown != r || s.Record.Stored != r.LSN {
			return false
		}
	}
	return l.Leader.Writing.Change == (elector.ChangeVoters{})
}

// situation is what runs, for people.
func (x *search) situation(w *snapshot) string {
	text := ""
	for i := range x.nodes {
		if w.peers[i].machine >= 0 {
			s := x.state(w, i)
			text += fmt.Sprintf("\n%s %s term=%d floor=%d leader=%q accepted=%s stored=%s shown=%s disk=%v writing=%v %+v",
				x.voters[i], s.Role, s.Term, s.Floor, s.Follower.Leader, s.Record.Accepted,
				s.Record.Stored, s.Record.Shown.LSN, w.peers[i].disk, w.peers[i].writing, s.Leader.Writing)
		}
	}
	return text + "\n"
}
