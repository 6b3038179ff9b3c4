package raft

import (
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/member"
)

// leading is what a leader knows.
type leading struct {
	beat    member.Timer // when the next AppendEntries is due
	active  member.Set   // who answered in this interval of E
	matched member.Set   // whose log has the leader's entry
	target  int          // of the transfer that is on; Nobody if none is
}

// lead appends the entry of the new term.
func (r *rules) lead() {
	r.follow(r.Term, r.Self, "votes of a quorum")
	r.Role, r.leads, r.log = elector.Leader, leading{target: member.Nobody}, r.Term
	r.replicate()
}

func (r *rules) replicate() {
	r.leads.beat = r.After(r.Timing.HeartbeatBroadcast)
	r.Broadcast(Message{Kind: AppendEntries, Term: r.Term})
}

// tend does what is due: after each E it sees who answered, and ends a transfer that has not
// succeeded; after each period it sends heartbeats.
func (r *rules) tend() {
	if r.Now >= r.since.Add(r.e) {
		r.leads.active.Put(r.Self, true)
		if r.checkQuorum && !r.Quorum(r.leads.active) {
			r.follow(r.Term, member.Nobody, "CheckQuorum")
			return
		}
		r.since, r.leads.active, r.leads.target = r.Now, member.Set{}, member.Nobody
	}
	if r.Due(&r.leads.beat) {
		r.replicate()
	}
}

// acknowledge notes that a voter follows, and has the log.
func (r *rules) acknowledge(from int) {
	r.leads.active.Put(from, true)
	if !r.leads.matched.Has(from) && from == r.leads.target {
		r.Send(from, Message{Kind: TimeoutNow, Term: r.Term})
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
	r.Send(to, Message{Kind: kind, Term: r.Term})
}
