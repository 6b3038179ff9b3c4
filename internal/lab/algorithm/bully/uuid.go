package bully

import (
	"slices"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/lsn"
)

// tries is how often COORDINATOR is sent to a member that does not acknowledge it.
const tries = 3

// uuid is the variant with epochs.
type uuid struct {
	*machine
	epoch  lsn.Term // of the newest round
	leader int
	term   lsn.Term       // the epoch in which leader said that it leads
	begin  algorithm.Time // of the first round; Never once it began

	failed   []algorithm.Time // by rank: when a listed member will have failed; Never if off the list
	nextBeat algorithm.Time
	left     []int          // by rank: how often COORDINATOR may still be sent
	retry    algorithm.Time // when to send it to those again
}

func newUUID(m *machine) rules {
	u := &uuid{
		machine: m, leader: nobody, begin: m.now.Add(m.ta), nextBeat: m.now, retry: elector.Never,
		failed: make([]algorithm.Time, m.n), left: make([]int, m.n),
	}
	for i := range u.failed {
		u.failed[i] = m.now.Add(m.silence)
	}
	u.failed[m.self] = elector.Never
	return u
}

func (u *uuid) receive(from int, msg algorithm.Message) {
	switch msg := msg.(type) {
	case Heartbeat:
		u.failed[from] = u.now.Add(u.silence)
	case Election:
		u.onElection(from, msg.Epoch)
	case Coordinator:
		u.epoch = max(u.epoch, msg.Epoch)
		u.leader, u.term, u.why = from, msg.Epoch, "COORDINATOR"
		u.retire()
		u.send(from, OK(msg))
	case OK:
		if msg.Epoch == u.term && u.leader == u.self {
			u.left[from] = 0
		}
	}
}

// retire ends the tries of a member that does not lead any more.
func (u *uuid) retire() {
	clear(u.left)
	u.retry = elector.Never
}

// onElection takes part in the round of a lower member.
func (u *uuid) onElection(from int, epoch lsn.Term) {
	switch {
	case from < u.self:
	case !u.higherListed():
		u.round("ELECTION, and no higher member is listed")
	case epoch > u.epoch:
		u.epoch, u.why = epoch, "ELECTION"
		u.ask()
	}
}

// higherListed reports whether the list has a member above this one.
func (u *uuid) higherListed() bool {
	for _, at := range u.failed[:u.self] {
		if at != elector.Never {
			return true
		}
	}
	return false
}

// round begins a round: this member leads, or asks those above it.
func (u *uuid) round(why string) {
	u.epoch++
	u.why = why
	if u.higherListed() {
		u.ask()
		return
	}
	u.leader, u.term = u.self, u.epoch
	for i := range u.left {
		u.left[i] = tries
	}
	u.left[u.self] = 0
	u.announce()
}

// ask sends ELECTION to the higher members of the list.
func (u *uuid) ask() {
	for i, at := range u.failed[:u.self] {
		if at != elector.Never {
			u.send(i, Election{Epoch: u.epoch})
		}
	}
}

// announce sends COORDINATOR to those that have not acknowledged it.
func (u *uuid) announce() {
	u.retry = elector.Never
	for i := range u.left {
		if u.left[i] > 0 {
			u.left[i]--
			u.send(i, Coordinator{Epoch: u.term})
			u.retry = u.now.Add(u.ta)
		}
	}
}

func (u *uuid) tick() algorithm.Time {
	if u.now >= u.begin {
		u.begin = elector.Never
		u.round("start")
	}
	if u.now >= u.retry {
		u.announce()
	}
	if u.now >= u.nextBeat {
		u.nextBeat = u.now.Add(u.beat)
		u.broadcast(Heartbeat{})
	}
	for i, at := range u.failed {
		if u.now >= at {
			u.fail(i)
		}
	}
	return min(u.begin, u.retry, u.nextBeat, slices.Min(u.failed))
}

// fail takes a member off the list, and begins a round whoever it is.
func (u *uuid) fail(i int) {
	u.failed[i] = elector.Never
	if u.leader == i {
		u.leader = nobody
		u.why = "the leader has failed"
	}
	if u.begin == elector.Never {
		u.round("a member has failed")
	}
}

func (u *uuid) view() algorithm.View {
	v := algorithm.View{Role: elector.Follower, Leader: u.name(u.leader), Term: u.term}
	switch u.leader {
	case u.self:
		v.Role = elector.Leader
	case nobody:
		v.Term = u.epoch
	}
	return v
}
