package elector_test

import (
	"fmt"
	"slices"

	"github.com/bmqelect/bmqelect/elector"
)

// alike is the canonical form of a machine whose clock has advanced by since. Its times count from
// that moment, and it forgets what nothing depends on any more. It behaves the same from then on.
func (x *search) alike(
	node int, lives uint8, m *elector.Machine, since elector.Time,
) (key machineKey, held []elector.Envelope) {
	key = machineKey{node: node, lives: lives, state: m.State()}
	x.forget(&key.state, noon(node)+since)
	if x.pairs && key.state.Follower.Carried {
		x.forgetPair(node, &key.state, since)
	}
	if m.LeaseFollows() {
		key.state.Leader.Writing.Kept = 0 // it goes on to follow
	}
	for _, at := range times(&key.state) {
		shift(at, since)
	}
	if f := &key.state.Follower; x.pairs {
		for _, at := range []*elector.Time{&f.HeardAt, &f.SaidAt, &f.SayAt, &f.EchoedAt} {
			shift(at, since)
		}
	}
	for _, e := range m.Held() {
		to := slices.Index(x.voters, e.To) // -1 for all: no such message echoes a time of another
		e.Message = x.aged(parcel{from: node, to: to, msg: e.Message}, since != 0).msg
		held = append(held, e)
		key.held += fmt.Sprint(e, e.Message.SentAt)
	}
	return key, held
}

// aged is a parcel, perhaps a quantum later, without the fields on which nothing depends.
func (x *search) aged(p parcel, quantum bool) parcel {
	if quantum && p.msg.SentAt != 0 {
		p.msg.SentAt -= x.rate(p.owner())
	}
	p.msg.Sequence = 0
	if p.msg.Offer != nil {
		p.msg.Offer = x.records[x.record(*p.msg.Offer)] // parcels are compared
	}
	switch {
	case p.msg.Kind == elector.ElectionScoutingResponse && p.msg.WillVote:
		p.msg.Term = 0
	case p.msg.Kind == elector.ElectionProposalResponse && !p.msg.WillVote:
		p.msg.SentAt = 0
	case p.msg.Kind == elector.HeartbeatAck && !x.names():
		p.msg.Reach, p.msg.MayStand = 0, false
	}
	if !x.inTurn() {
		p.msg.Leader, p.msg.LeaderTerm = "", 0 // hints
	}
	return p
}

// owner is whose clock the time in a parcel is a reading of.
func (p *parcel) owner() int {
	switch p.msg.Kind {
	case elector.HeartbeatAck, elector.ElectionProposalResponse:
		return p.to
	}
	return p.from
}

// inTurn reports whether waits go by rank.
func (x *search) inTurn() bool { return x.timing.MinRandomWait != 0 }

// names reports whether leaders name successors, so that it matters who is fit.
func (x *search) names() bool { return len(x.orders) > 0 || x.inTurn() }

// forget clears the fields that are for people only, that are over at a time, or that matter only
// in other kinds of scenes.
func (x *search) forget(s *elector.State, now elector.Time) {
	if s.Role == elector.Dormant {
		pauseEnd, turns := s.PauseEnd, s.Turns
		*s = elector.State{}
		s.PauseEnd, s.Turns = pauseEnd, turns
	}
	past := func(at elector.Time, after elector.Time) bool { return at != 0 && at+after <= now }
	s.Now, s.Follower.Period = 0, 0
	if f := &s.Follower; !f.Carried {
		f.HeardAt = 0
	}
	s.Leader.SlowSince, s.Leader.Sequence = 0, 0
	s.Follower.HintedLeader, s.Follower.HintedTerm = "", 0
	if past(s.Climb.End, 0) {
		s.Climb.From, s.Climb.End = 0, 0
	}
	if past(s.Promise.Until, 0) {
		s.Promise.Until = 1
	}
	heartbeat, lease := elector.Time(x.timing.HeartbeatBroadcast), elector.Time(x.timing.Lease)
	if past(s.Leader.RaisedAt, heartbeat) {
		s.Leader.RaisedAt = 0
	}
	for _, at := range []*elector.Time{&s.EmbargoEnd, &s.HeldUntil, &s.Follower.SuccessorUntil} {
		if past(*at, 0) {
			*at = 0
		}
	}
	if s.RefusedTerm <= s.Term {
		s.RefusedTerm = 0
	}
	if s.Refused.Term <= max(s.Term, s.Floor) {
		s.Refused = zero.Refused // it would be refused for its term
	}
	if s.Candidate.Ballot.Sent {
		s.Candidate.Began = 0
	}
	// Nothing is echoed that was not sent.
	for _, at := range []*elector.Time{
		&s.Leader.Since, &s.Candidate.Ballot.SentAt, &s.Leader.Reaffirm.SentAt,
	} {
		if at != &s.Leader.Since || !x.pairs || past(*at, lease) { // beats may be older
			*at = min(*at, 1)
		}
	}
	s.Leader.Confirm = zero.Leader.Confirm // nobody asks for a proof
	if f := &s.Follower; !f.Carried {
		f.Said, f.SaidAt, f.Echoed, f.EchoedAt = zero.Follower.Said, 0, 0, 0
	}
	if !s.Leader.Covered && !x.pairs {
		s.Leader.Told = zero.Leader.Told
	}
	for v := range x.nodes {
		by := &s.By[v]
		by.Wanted, by.Priority = 0, 0
		by.Echo = 0 // nobody asks for a proof
		if past(by.FitSince, elector.Time(x.timing.Promise())) {
			by.FitSince = 1
		}
		if !x.names() { // nobody names a successor
			by.FitSince = 0
		}
		if past(by.Support, lease) {
			by.Support = 0
		}
	}
	if !x.inTurn() {
		s.Turns.Failed, s.Turns.Heir, s.Turns.LastLeader, s.Follower.LeaderDied = 0, "", "", false
	}
	if !x.names() { // nobody names a successor
		s.Turns.LedLast = false
		s.Leader.MayStand, s.Leader.LacksQuorum, s.Leader.Settled = 0, 0, 0
	}
}

var zero elector.State

// times are all times of a state.
func times(s *elector.State) []*elector.Time {
	all := []*elector.Time{
		&s.Climb.End, &s.Promise.Until, &s.EmbargoEnd, &s.RestEnd, &s.PauseEnd, &s.HeldUntil,
		&s.Follower.SilentAt, &s.Follower.StandAt, &s.Follower.SuccessorUntil, &s.Follower.RoundEnd,
		&s.Candidate.Began, &s.Candidate.ProposeAt, &s.Candidate.End, &s.Candidate.Ballot.SentAt,
		&s.Leader.Since, &s.Leader.BroadcastAt, &s.Leader.LeaseEnd, &s.Leader.RaisedAt,
		&s.Leader.Reaffirm.SentAt, &s.Leader.Handover.Asked, &s.Leader.Handover.End,
		&s.Leader.Handover.ReadyBy,
		&s.Leader.Writing.Kept,
	}
	for v := range maxVoters {
		all = append(all, &s.By[v].Support, &s.By[v].FitSince)
	}
	return all
}

// shift makes a time relative to a later moment. 0 means none, and 1 a time that is long past.
func shift(at *elector.Time, by elector.Time) {
	if *at > 1 && *at != elector.Never {
		*at -= by
	}
}
