package bully

import (
	"slices"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/member"
	"github.com/bmqelect/bmqelect/lsn"
)

// tries is how often COORDINATOR is sent to a member that does not acknowledge it.
const tries = 3

// uuid is the variant with epochs.
type uuid struct {
	machine
	epoch  lsn.Term // of the newest round
	leader int
	term   lsn.Term       // the epoch in which leader said that it leads
	begin  algorithm.Time // of the first round; Never once it began

	failed   []algorithm.Time // by rank: when a listed member will have failed; Never if off the list
	nextBeat algorithm.Time
	left     []int          // by rank: how often COORDINATOR may still be sent
	retry    algorithm.Time // when to send it to those again
}

func newUUID(m machine) member.Rules {
	u := &uuid{
		machine: m, leader: nobody, begin: m.Now.Add(m.ta), nextBeat: m.Now, retry: elector.Never,
		failed: make([]algorithm.Time, len(m.Cfg.Order)), left: make([]int, len(m.Cfg.Order)),
	}
	for i := range u.failed {
		u.failed[i] = m.Now.Add(m.silence)
	}
	u.failed[m.Self] = elector.Never
	return u
}

func (u *uuid) Receive(from int, msg algorithm.Message) {
	switch msg := msg.(type) {
	case Heartbeat:
		u.failed[from] = u.Now.Add(u.silence)
	case Election:
		u.onElection(from, msg.Epoch)
	case Coordinator:
		u.epoch = max(u.epoch, msg.Epoch)
		u.leader, u.term, u.Why = from, msg.Epoch, "COORDINATOR"
		u.retire()
		u.Send(from, OK(msg))
	case OK:
		if msg.Epoch == u.term && u.leader == u.Self {
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
	case from < u.Self:
	case !u.higherListed():
		u.round("ELECTION, and no higher member is listed")
	case epoch > u.epoch:
		u.epoch, u.Why = epoch, "ELECTION"
		u.ask()
	}
}

// higherListed reports whether the list has a member above this one.
func (u *uuid) higherListed() bool {
	for _, at := range u.failed[:u.Self] {
		if at != elector.Never {
			return true
		}
	}
	return false
}

// round begins a round: this member leads, or asks those above it.
func (u *uuid) round(why string) {
	u.epoch++
	u.Why = why
	if u.higherListed() {
		u.ask()
		return
	}
	u.leader, u.term = u.Self, u.epoch
	for i := range u.left {
		u.left[i] = tries
	}
	u.left[u.Self] = 0
	u.announce()
}

// ask sends ELECTION to the higher members of the list.
func (u *uuid) ask() {
	for i, at := range u.failed[:u.Self] {
		if at != elector.Never {
			u.Send(i, Election{Epoch: u.epoch})
		}
	}
}

// announce sends COORDINATOR to those that have not acknowledged it.
func (u *uuid) announce() {
	u.retry = elector.Never
	for i := range u.left {
		if u.left[i] > 0 {
			u.left[i]--
			u.Send(i, Coordinator{Epoch: u.term})
			u.retry = u.Now.Add(u.ta)
		}
	}
}

func (u *uuid) Tick() algorithm.Time {
	if u.Now >= u.begin {
		u.begin = elector.Never
		u.round("start")
	}
	if u.Now >= u.retry {
		u.announce()
	}
	if u.Now >= u.nextBeat {
		u.nextBeat = u.Now.Add(u.beat)
		u.Broadcast(Heartbeat{})
	}
	for i, at := range u.failed {
		if u.Now >= at {
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
		u.Why = "the leader has failed"
	}
	if u.begin == elector.Never {
		u.round("a member has failed")
	}
}

func (u *uuid) View() algorithm.View {
	v := algorithm.View{Role: elector.Follower, Leader: u.Name(u.leader), Term: u.term}
	switch u.leader {
	case u.Self:
		v.Role = elector.Leader
	case nobody:
		v.Term = u.epoch
	}
	return v
}
