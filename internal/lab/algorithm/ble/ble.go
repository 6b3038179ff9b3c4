// Package ble is the ballot leader election of Omni-Paxos, in the newer form with the flag
// happy: Ng, Haridi and Carbone, Omni-Paxos: Breaking the Barriers of Partial Connectivity,
// EuroSys 2023, and its authors' implementation.
//
// Every server goes through heartbeat rounds of its own. At the beginning of a round it asks
// all peers (HBRequest), who answer at once, always, with their ballot, the leader's ballot as
// they know it, and whether they are happy: whether they are, see or hear of a leader that a
// quorum can follow. At the end it judges by the replies of this round alone:
//
//  1. The highest ballot among the replies is the leader's, if it is above the one known.
//  2. The leader is happy if a quorum, itself included, is not past its ballot, or else if
//     someone is happy with a higher one. Another server is happy if the leader itself says
//     that it is happy.
//  3. Takeover: a server that is unhappy, hears from a quorum, and sees nobody happy,
//     increments its ballot past the leader's, and leads.
//  4. A promise in the replicated log that is above the leader's ballot replaces it.
//  5. A server leads if the leader's ballot is its own.
//
// The replicated log is here only as far as the election needs it: who leads in a ballot
// promises it, durably, and sends Prepare; who gets a Prepare of a higher ballot promises that
// and follows. A server answers the question who leads with its promise, as the implementation
// does, if that is the higher ballot. The log's answers, repeats and contents are left out:
// nothing here waits for them, and a leader needs no up-to-date log. So a server leads here
// when it begins to prepare, before a quorum has promised.
//
// As in the source, replies leave at once, also while a takeover's promise is being written. A
// server that crashes then does not know its ballot any more, and may take the same one again:
// it is the log that must not go on from there.
//
// The time-out of a round is Timing.Inactivity. View.Term numbers the ballots in their order. The
// priority of ballots is left out: pids order as freely here.
//
// It guarantees that no two servers have the same ballot, and a leader within four time-outs once a
// server hears from a quorum. A leader is stable while the servers that it needs are happy with it:
// one that only lost its link to the leader sees happy neighbours and stays quiet. It does not
// guarantee one leader at a time: a replaced one believes until it hears of a higher ballot at the
// end of a round or in a Prepare, and one without a quorum goes on believing for as long as it
// hears of none. A crash is noticed at the end of the first full round, so a pause shorter than a
// round may pass unseen. It costs 2n(n-1) messages a round, for ever.
package ble

import (
	"slices"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/member"
)

// BLE is ballot leader election.
var BLE = algorithm.Algorithm{
	Name:             "ble",
	Title:            "Omni-Paxos BLE",
	Source:           "Ng, Haridi, Carbone: Omni-Paxos, EuroSys 2023",
	New:              member.Maker(begin),
	OneLeaderPerTerm: true,
	Deviates:         "of the log there is only the promise; no priorities",
	Tuned:            tuned,
}

// tuned has rounds of four round trips, and not below the example of the library's documentation.
func tuned(t elector.Timing, l algorithm.Link) elector.Timing {
	t.HeartbeatBroadcast, t.HeartbeatMissCount = max(25*time.Millisecond, 4*l.Longest()), 2
	return t
}

// Ballot is of one server's leadership.
type Ballot = member.Ballot

// HBRequest asks for a heartbeat.
type HBRequest struct{ Round uint64 }

// HBReply is a heartbeat: the sender's state when it was asked.
type HBReply struct {
	Round  uint64 // as in the request
	Ballot Ballot // the sender's own
	Leader Ballot // the leader's, as the sender knows it
	Happy  bool
}

// Prepare is how a new leader begins in the replicated log.
type Prepare struct{ Ballot Ballot }

// Disk is what the replicated log keeps durable of the election.
type Disk struct{ Promise Ballot }

// String is for example "promise=2.3".
func (d Disk) String() string { return "promise=" + d.Promise.String() }

// rules are those of one server. The names of its fields are the source's.
type rules struct {
	*member.Member
	timeout member.Timer // end of this round

	round   uint64
	replied member.Set
	replies []HBReply // of this round, one a peer
	current Ballot    // this server's own
	leader  Ballot    // the highest that it judges by
	happy   bool
	leads   bool   // by the end of the last round
	promise Ballot // the log's
}

// begin begins with ballot 1; a server that has promised before begins below all ballots, and
// with its promise as the leader, so that it cannot claim a ballot of its life before.
func begin(m *member.Member) member.Rules {
	r := &rules{Member: m, happy: true, current: Ballot{N: 1, Pid: m.Pid()}}
	r.leader = r.current
	if disk, ok := m.Disk.(Disk); ok {
		r.current.N, r.leader, r.promise = 0, disk.Promise, disk.Promise
		r.see("recovery")
	}
	r.newRound(r.Send)
	return r
}

func (r *rules) Receive(from int, message algorithm.Message) {
	switch msg := message.(type) {
	case HBRequest:
		r.Send(from, HBReply{msg.Round, r.current, r.leader, r.happy})
	case HBReply:
		// A network that doubles messages must not make a quorum.
		if msg.Round == r.round && !r.replied.Has(from) {
			r.replied.Put(from, true)
			r.replies = append(r.replies, msg)
		}
	case Prepare:
		if msg.Ballot.Above(r.promise) {
			r.promise = msg.Ballot
			r.see("Prepare")
		}
	}
}

func (r *rules) Input(in algorithm.Input) {
	if _, ok := in.(elector.Tick); ok && r.Due(&r.timeout) {
		r.hbTimeout()
	}
}

func (r *rules) Tick() algorithm.Time {
	r.Save(Disk{r.promise})
	return r.timeout.When()
}

// hbTimeout ends a round: rules 1 to 5 of the package comment.
func (r *rules) hbTimeout() {
	why := "end of round"
	for _, reply := range r.replies {
		r.leader.Raise(reply.Ballot)
	}
	r.updateHappiness()
	if r.takesOver() {
		r.current.N = r.leader.N + 1
		r.leader, r.happy, why = r.current, true, "takeover"
	}
	if r.promise.Above(r.leader) {
		r.leader, r.happy = r.promise, true
	}
	r.leads = r.leader == r.current
	ask := r.Send
	if r.leads && r.current.Above(r.promise) {
		r.promise, ask = r.current, r.Hold
		r.Hold(member.All, Prepare{r.current})
	}
	r.see(why)
	r.newRound(ask)
}

func (r *rules) updateHappiness() {
	followers, led := 1, false // potential followers of this server; its leader is happy
	aboveHappy := false        // someone is happy with a higher ballot
	for _, reply := range r.replies {
		if !reply.Leader.Above(r.current) {
			followers++
		} else if reply.Happy {
			aboveHappy = true
		}
		led = led || reply.Ballot == r.leader && reply.Happy
	}
	r.happy = led
	if r.leader == r.current {
		r.happy = followers >= r.Cfg.Elector.QuorumSize() || aboveHappy
	}
}

// takesOver is rule 3.
func (r *rules) takesOver() bool {
	return !r.happy && 1+len(r.replies) >= r.Cfg.Elector.QuorumSize() &&
		!slices.ContainsFunc(r.replies, func(reply HBReply) bool { return reply.Happy })
}

func (r *rules) newRound(ask func(to int, request algorithm.Message)) {
	r.round++
	r.replied, r.replies = member.Set{}, r.replies[:0]
	r.timeout = r.After(r.Timing.Inactivity())
	ask(member.All, HBRequest{r.round})
}

// see is the view after the ballots have changed. The log does not lead in a ballot below
// its promise.
func (r *rules) see(why string) {
	b := r.leader
	b.Raise(r.promise)
	leader, term := r.Owner(b)
	r.Become(elector.Follower, leader, why)
	r.Term = term
	switch {
	case r.leads && b == r.current:
		r.Role = elector.Leader
	case leader == r.Self: // a ballot of its life before
		r.Leader, r.Term = member.Nobody, 0
	}
}
