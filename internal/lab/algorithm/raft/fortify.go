package raft

import (
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/member"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/storeliveness"
	"github.com/bmqelect/bmqelect/lsn"
)

// Fortified is Raft with the leader leases of CockroachDB. A leader asks those whose stores support
// its store to fortify it. Who does neither campaigns nor votes until that support is withdrawn,
// and needs no heartbeats of Raft. So until a quorum's support expires, LeadSupportUntil, nobody
// else is elected, and the leader has a lease. Read were pkg/raft/raft.go of cockroachdb/cockroach
// at ab0193c and tracker/fortificationtracker.go at 200d56f. The rules beyond PreVote and
// CheckQuorum:
//
//   - FortifyLeader goes to each supporter that has not fortified the leader in its present epoch,
//     with each heartbeat of the store. The receiver notes the epoch, durably, and answers it.
//   - LeadSupportUntil is the latest expiration of a quorum, itself included, of those whose
//     support has the epoch in which they fortified.
//   - A replica that fortifies a leader whom its store supports in that epoch is in the fortify
//     lease: it drops whatever has a higher term, except what a leader sends, a transfer's vote,
//     and votes for a log with an entry of a term above its own. Elsewhere etcd's lease holds.
//   - When the support is withdrawn it waits no E, only what is drawn beyond, and campaigns.
//   - Who has not the support of a quorum of stores does not campaign.
//   - CheckQuorum lets a leader go on while LeadSupportUntil is ahead.
//   - A leader in the fortify lease that hears of a higher term from who is in it lets
//     LeadSupportUntil pass, and follows then, in that term.
//   - Who has led and does not any more, and whose LeadSupportUntil has passed, sends
//     DeFortifyLeader of that term with each heartbeat, until its log has an entry of a later one.
//     Who fortified it then does not any more.
//   - What a replica fortifies is on disk, and holds after a restart.
//
// Departures: AppendEntries is sent until it is answered, not for commands; DeFortifyLeader stops
// at an entry, not at a committed one; Raft's messages carry no clock. E is two thirds of what
// support lasts, 2 s of 3 s by the source's defaults. Two may lead at a time for as long as their
// clocks differ: a lease ends by the clock of the one that asked for support, and its withdrawal
// comes by the supporter's.
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
		r.fort.epoch, r.since = 0, r.Now.Add(-r.e)
	}
}

func (r *rules) fortify(from int) {
	if epoch := r.fort.For(from); epoch != 0 {
		r.fort.epoch = epoch
		r.Hold(from, Message{Kind: FortifyLeaderResponse, Term: r.Term, Epoch: epoch})
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
