package raft

import (
	"slices"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/member"
)

// leading is what a leader knows.
type leading struct {
	beat    member.Timer // when the next AppendEntries is due
	active  member.Set   // who answered in this interval of E
	matched member.Set   // whose log has the leader's entry
	target  int          // of the transfer that is on; Nobody if none is

	acked   []algorithm.Time // by rank: when the newest AppendEntries left that it answered
	suspect algorithm.Time   // AppendEntries that left before do not count for the lease
}

// lead appends the entry of the new term.
func (r *rules) lead() {
	r.follow(r.Term, r.Self, "votes of a quorum")
	r.Role, r.log = elector.Leader, r.Term
	r.leads = leading{target: member.Nobody, suspect: r.Now,
		acked: make([]algorithm.Time, len(r.Cfg.Order))}
	r.replicate()
	if r.fort != nil {
		r.fort.led, r.fort.by = r.Term, make([]uint64, len(r.Cfg.Order))
		r.fort.stepsTo = 0
		r.fortifyAll(false)
	}
}

func (r *rules) replicate() {
	r.leads.beat = r.After(r.Timing.HeartbeatBroadcast)
	r.order(member.All, AppendEntries)
}

// tend does what is due: after each E it sees who answered, and ends a transfer that has not
// succeeded; after each period it sends heartbeats.
func (r *rules) tend() {
	if r.Now >= r.since.Add(r.e) {
		r.leads.active.Put(r.Self, true)
		if r.checkQuorum && !r.Quorum(r.leads.active) && !r.fort.leased() {
			r.follow(r.Term, member.Nobody, "CheckQuorum")
			return
		}
		r.since, r.leads.active, r.leads.target = r.Now, member.Set{}, member.Nobody
	}
	if r.Due(&r.leads.beat) && r.fort == nil { // otherwise stores have heartbeats
		r.replicate()
	}
}

// order sends AppendEntries or TimeoutNow. After the latter another may lead, so that it takes an
// AppendEntries from after the transfer to have a lease again.
func (r *rules) order(to int, kind Kind) {
	msg := Message{Kind: kind, Term: r.Term}
	switch {
	case kind == TimeoutNow:
		r.leads.suspect = r.since.Add(r.e)
		r.Send(to, msg)
	case r.lease:
		r.Send(to, Timed{msg, r.Now})
	default:
		r.Send(to, msg)
	}
	if kind == TimeoutNow && r.fort != nil {
		r.follow(r.Term, member.Nobody, "TimeoutNow")
	}
}

// Lease begins when the newest AppendEntries left that a quorum, this
// node included, has answered.
func (r *rules) Lease() elector.Lease {
	switch {
	case r.Role != elector.Leader, r.fort != nil && !r.fort.leased():
		return elector.Lease{}
	case r.fort != nil:
		return elector.Lease{Term: r.Term, End: r.fort.Own(r.fort.until)}
	}
	acked := slices.Clone(r.leads.acked)
	acked[r.Self] = r.Now
	slices.Sort(acked)
	from := acked[len(acked)-r.Cfg.Elector.QuorumSize()]
	if from < r.leads.suspect {
		return elector.Lease{}
	}
	return elector.Lease{Term: r.Term, End: from.Add(r.e * 9 / 10)}
}

// acknowledge notes that a voter follows, and has the log.
func (r *rules) acknowledge(from int, sent algorithm.Time) {
	r.leads.active.Put(from, true)
	r.leads.acked[from] = max(r.leads.acked[from], sent)
	if !r.leads.matched.Has(from) && from == r.leads.target {
		r.order(from, TimeoutNow)
	}
	r.leads.matched.Put(from, true)
}

// transfer hands over to a voter, to the first that has the log if none is named; to itself it
// ends a transfer. It has E to succeed.
func (r *rules) transfer(in elector.Transfer) {
	to := r.Cfg.Rank(in.To)
	for rank := range r.Cfg.Order {
		if in.To == "" && r.leads.matched.Has(rank) {
			to = rank
		}
	}
	if to == member.Nobody || to == r.leads.target {
		return
	}
	r.leads.target = member.Nobody
	if to == r.Self {
		return
	}
	r.leads.target, r.since = to, r.Now
	kind := AppendEntries
	if r.leads.matched.Has(to) {
		kind = TimeoutNow
	}
	r.order(to, kind)
}
