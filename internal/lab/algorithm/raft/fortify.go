package raft

import (
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/member"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/storeliveness"
	"github.com/bmqelect/bmqelect/lsn"
)

// Fortified is Raft with the leader leases of CockroachDB. A leader asks the replicas whose stores
// support its store to fortify it. Until that support is withdrawn, a replica that fortifies a
// leader neither campaigns nor votes, and needs no heartbeats of Raft. So nobody else is elected
// until the support of a quorum expires, at LeadSupportUntil: that is the leader's lease. Read were
// pkg/raft/raft.go of cockroachdb/cockroach at ab0193c and tracker/fortificationtracker.go at
// 200d56f. The rules beyond PreVote and CheckQuorum:
//
//   - With each heartbeat of its store the leader sends FortifyLeader to each supporter that has
//     not fortified it in the supporter's present epoch. The receiver saves the epoch, and answers
//     with it.
//   - LeadSupportUntil is the latest time until which a quorum, the leader included, supports the
//     leader's store in the epochs in which it fortified the leader.
//   - A replica that fortifies a leader, and whose store still supports it in that epoch, is in the
//     fortify lease. It drops messages of higher terms, except those that only a leader sends,
//     requests for votes in a transfer, and those of candidates whose log has an entry of a higher
//     term than its own. Where nothing is fortified, etcd's lease holds: for E after a leader was
//     heard, whether the replica tries to campaign or not.
//   - A replica whose store withdraws its support does not wait for E again, only for what it has
//     drawn beyond, and campaigns.
//   - A replica without the support of a quorum of stores does not campaign.
//   - CheckQuorum lets a leader go on while LeadSupportUntil is ahead.
//   - A leader in the fortify lease that gets a message of a higher term, other than a request for
//     a vote, extends LeadSupportUntil no more, and becomes a follower in that term when it has
//     passed.
//   - A former leader sends DeFortifyLeader of its term with each heartbeat of its store once its
//     LeadSupportUntil has passed, until its log has an entry of a later term. The receiver no
//     longer fortifies it.
//   - What a replica fortifies is on disk, and holds after a restart.
//
// Departures: AppendEntries is sent until it is answered, not for commands. DeFortifyLeader goes
// with heartbeats only, not also when the leader steps down, and stops at an entry that need not be
// committed. Raft's messages carry no clock. E is two thirds of the support's duration: 2 s and 3 s
// by the source's defaults. Two may lead at a time for as long as their clocks differ: a lease ends
// by the clock of the store that asked for support, and its supporter withdraws by its own.
var Fortified = define("store-liveness", "Raft, store liveness", "cockroachdb/cockroach",
	variant{etcd: true, preVote: true, checkQuorum: true, fortify: true})

// fortification is what a replica of Fortified knows beyond Raft.
type fortification struct {
	*storeliveness.Store
	epoch uint64 // in which it fortifies the leader; 0 if it does not

	led     lsn.Term       // the last term that it led in this life
	by      []uint64       // by rank: in which epoch it was fortified in it
	until   algorithm.Time // LeadSupportUntil
	stepsTo lsn.Term       // the term to follow in when that has passed; 0 for none
}

func (r *rules) beginFortified(saved Disk) {
	r.e = r.e * 2 / 3
	r.fort = &fortification{Store: storeliveness.Begin(r.Member, saved.Store)}
	if saved.LeadEpoch != 0 && saved.Lead != r.Cfg.Self() {
		r.Leader, r.fort.epoch = r.Rank(saved.Lead), saved.LeadEpoch
	}
}

// fortifies reports whether this replica is in the fortify lease.
func (r *rules) fortifies() bool {
	return r.fort != nil && r.fort.epoch != 0 && r.fort.For(r.Leader) == r.fort.epoch
}

// leased reports whether a lease may still be relied on.
func (f *fortification) leased() bool { return f != nil && f.until > f.Clock() }

// deFortify ends what this replica fortifies: there is no E to wait for.
func (r *rules) deFortify() {
	if r.fort != nil && r.fort.epoch != 0 {
		r.fort.epoch, r.since, r.last = 0, r.Now.Add(-r.e), r.Now.Add(-r.e)
	}
}

func (r *rules) fortify(from int) {
	if epoch := r.fort.For(from); epoch != 0 {
		r.fort.epoch = epoch
		r.Hold(from, InEpoch{Message{Kind: FortifyLeaderResponse, Term: r.Term}, epoch})
	}
}

// fortifyAll asks those that support the leader's store, and brings them up to date again.
func (r *rules) fortifyAll(again bool) {
	r.fort.epoch = r.fort.For(r.Self)
	for i := range r.Others {
		switch epoch := r.fort.From(i); {
		case epoch == 0:
			continue
		case epoch == r.fort.by[i]:
			r.leads.active.Put(i, true)
		default:
			r.Send(i, Message{Kind: FortifyLeader, Term: r.Term})
		}
		if again && !r.leads.matched.Has(i) {
			r.order(i, AppendEntries)
		}
	}
}

func (r *rules) deFortifyAll() {
	if f := r.fort; f.led != 0 && r.log <= f.led && !f.leased() {
		r.Broadcast(Message{Kind: DeFortifyLeader, Term: f.led})
	}
}

// tickFortified does what is due with the store's support, and returns when there is more.
func (r *rules) tickFortified() algorithm.Time {
	f := r.fort
	wake, beats := f.Tick()
	if !r.fortifies() && r.Role != elector.Leader {
		r.deFortify()
	}
	switch {
	case !f.Awake:
		return wake
	case r.Role != elector.Leader && beats:
		r.deFortifyAll()
	case r.Role == elector.Leader && f.stepsTo != 0 && !f.leased():
		r.follow(f.stepsTo, member.Nobody, "steps down for a stranded peer")
	case r.Role == elector.Leader:
		if saved, _ := r.Saved.(Disk); saved.Term == r.Term && saved.Lead == r.Cfg.Self() {
			f.by[r.Self] = saved.LeadEpoch
		}
		if beats {
			r.fortifyAll(true)
		}
		if f.stepsTo == 0 {
			f.until = f.Until(f.by)
		}
		if f.stepsTo != 0 {
			wake = min(wake, f.Own(f.until))
		}
	}
	return wake
}
