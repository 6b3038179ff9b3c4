package elector_test

import (
	"encoding/binary"
	"hash/maphash"

	"github.com/bmqelect/bmqelect/elector"
)

// canon finds the states that differ only by when they are reached, or by what nothing depends
// on any more.
type canon struct {
	s        *search
	machines map[machineAt]uint32
	known    map[machineKey]uint32
	parcels  map[parcelAt]uint32
	alike    map[parcel]uint32
}

type machineAt struct {
	machine int32
	now     int16
}

type parcelAt struct {
	number uint16
	now    int16
}

// hash tells states apart: 128 bits, so that no two of some million are confused.
func (x *search) hash(w *snapshot) (h [2]uint64) {
	var buf [1024]byte
	b := buf[:0]
	for i := range x.nodes {
		p := &w.peers[i]
		b = binary.LittleEndian.AppendUint32(b, x.canon.machine(i, p.machine, w.now))
		b = append(b, p.waits, p.linked, p.down, p.died, truth(p.behind), truth(p.working))
		for _, t := range []elector.Terms{p.disk, p.writing} {
			b = append(b, byte(t.Entered), byte(t.Reserved))
		}
		if p.working {
			b = binary.LittleEndian.AppendUint64(b, uint64(p.workEnd-x.clock(i, w.now)))
		}
		b = append(b, p.votes[:]...)
	}
	for _, t := range w.traffic.flights[:w.traffic.n] {
		b = binary.LittleEndian.AppendUint32(b, x.canon.parcel(t.number, w.now))
		b = append(b, t.age)
	}
	b = binary.LittleEndian.AppendUint32(b, w.cut)
	b = append(b, w.leaders[:]...)
	b = append(b, byte(w.led), w.spent.crashes, w.spent.cuts, w.spent.twins, w.spent.stalls,
		w.spent.orders)
	return [2]uint64{maphash.Bytes(x.seed[0], b), maphash.Bytes(x.seed[1], b)}
}

func truth(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// machine numbers what a machine remembers, as seen at a time.
func (c *canon) machine(node int, machine int32, now int16) uint32 {
	if machine < 0 {
		return 0
	}
	at := machineAt{machine, now}
	number, ok := c.machines[at]
	if ok {
		return number
	}
	m := c.s.machines[machine]
	key := machineKey{node, c.state(c.s.states[machine], node, now), ""}
	for _, e := range m.Held() {
		p := c.shifted(parcel{node, c.index(e.To), e.Message}, now)
		key.held += e.String() + p.msg.SentAt.String()
	}
	number, ok = c.known[key]
	if !ok {
		number = uint32(len(c.known)) + 1
		c.known[key] = number
	}
	c.machines[at] = number
	return number
}

func (c *canon) index(id elector.NodeID) int {
	for i, v := range c.s.voters {
		if v == id {
			return i
		}
	}
	return 0 // all members: no such message has a time of another clock
}

// parcel numbers what is on its way, as seen at a time.
func (c *canon) parcel(number uint16, now int16) uint32 {
	at := parcelAt{number, now}
	n, ok := c.parcels[at]
	if ok {
		return n
	}
	p := c.shifted(c.s.parcels[number], now)
	n, ok = c.alike[p]
	if !ok {
		n = uint32(len(c.alike)) + 1
		c.alike[p] = n
	}
	c.parcels[at] = n
	return n
}

// shifted is a parcel whose time is counted from now, on the clock that it is a reading of.
func (c *canon) shifted(p parcel, now int16) parcel {
	owner := p.from
	switch p.msg.Kind {
	case elector.HeartbeatAck, elector.ElectionProposalResponse:
		owner = p.to
	}
	if p.msg.SentAt != 0 {
		p.msg.SentAt += horizon - c.s.clock(owner, now)
	}
	p.msg.Sequence = 0
	return p
}

// horizon is how long ago something must be until it only counts as past.
const horizon = 100 * unit

// state is a state whose times are counted from now. What is over is forgotten, and so is what
// only people look at.
func (c *canon) state(s elector.State, node int, now int16) elector.State {
	clock, t := c.s.clock(node, now), c.s.timing
	past := func(at elector.Time, after elector.Time) bool { return at+after <= clock }
	s.Now, s.Follower.HeardAt, s.Leader.SlowSince, s.Leader.Sequence = 0, 0, 0, 0
	s.Follower.HintedLeader, s.Follower.HintedTerm = "", 0
	if past(s.Climb.End, 0) {
		s.Climb.From, s.Climb.End = 0, 0
	}
	if past(s.Promise.Until, 0) {
		s.Promise.To, s.Promise.Term, s.Promise.Until = "", 0, 0
	}
	if past(s.Leader.RaisedAt, elector.Time(t.HeartbeatBroadcast)) {
		s.Leader.RaisedAt = 0
	}
	if t.MinRandomWait == 0 {
		s.Turns.Failed, s.Turns.Heir, s.Turns.LastLeader = 0, "", ""
		s.Refused.From = ""
	}
	for _, at := range []*elector.Time{&s.EmbargoEnd, &s.HeldUntil, &s.Follower.SuccessorUntil} {
		if past(*at, 0) {
			*at = 0
		}
	}
	lease := elector.Time(t.Lease)
	// An echo of what was sent so long ago backs no lease.
	for _, at := range []*elector.Time{
		&s.Leader.Since, &s.Candidate.Ballot.SentAt, &s.Leader.Reaffirm.SentAt,
	} {
		if *at != 0 && past(*at, lease) {
			*at = clock - lease
		}
	}
	for v := range c.s.nodes {
		s.Leader.FitSince[v] = min(s.Leader.FitSince[v], 1)
		for _, at := range []*elector.Time{
			&s.Leader.Support[v], &s.Candidate.Ballot.Support[v], &s.Leader.Reaffirm.Support[v],
		} {
			if past(*at, lease) {
				*at = 0
			}
			shift(at, clock)
		}
	}
	for _, at := range []*elector.Time{
		&s.Climb.End, &s.Promise.Until, &s.EmbargoEnd, &s.RestEnd, &s.PauseEnd, &s.HeldUntil,
		&s.Follower.SilentAt, &s.Follower.StandAt, &s.Follower.SuccessorUntil, &s.Follower.RoundEnd,
		&s.Candidate.Began, &s.Candidate.ProposeAt, &s.Candidate.End, &s.Candidate.Ballot.SentAt,
		&s.Leader.Since, &s.Leader.BroadcastAt, &s.Leader.LeaseEnd, &s.Leader.RaisedAt,
		&s.Leader.Reaffirm.SentAt, &s.Leader.Handover.Asked, &s.Leader.Handover.End,
	} {
		shift(at, clock)
	}
	return s
}

// shift counts a time from now on; what lies behind the horizon lies at it.
func shift(at *elector.Time, clock elector.Time) {
	if *at != 0 && *at != elector.Never {
		*at = max(*at-clock+horizon, 1)
	}
}
