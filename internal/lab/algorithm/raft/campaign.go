package raft

import (
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/member"
)

// preCampaign asks whether the node would win. The timeout begins anew, but is not drawn
// anew: the node has not changed its term.
func (r *rules) preCampaign() {
	r.Become(elector.Candidate, member.Nobody, "election timeout")
	r.pre, r.since = true, r.Now
	r.ask(Message{Kind: PreVote, Term: r.Term + 1, LastLogTerm: r.log})
	r.count(r.Self, Granted)
}

// campaign enters the next term and asks for votes. The own one counts once it is durable.
func (r *rules) campaign(why string, transfer bool) {
	r.follow(r.Term+1, member.Nobody, why)
	r.restart()
	r.Role, r.votedFor = elector.Candidate, r.Cfg.Self()
	r.ask(Message{Kind: RequestVote, Term: r.Term, LastLogTerm: r.log, Transfer: transfer})
}

func (r *rules) ask(request Message) {
	r.granted, r.rejected = member.Set{}, member.Set{}
	for peer := range r.Others {
		r.Send(peer, request)
	}
}

// vote answers a candidate or pre-candidate. In etcd a node that knows a leader in this term has no
// vote left, whether it voted or not. In the dissertation it may have one; but it has the leader's
// entry, and no other candidate of that term has that. The answer to a pre-candidate binds nobody.
func (r *rules) vote(from int, request Message) {
	free := r.votedFor == r.Name(from) ||
		r.votedFor == "" && (!r.etcd || r.Leader == member.Nobody) ||
		request.Kind == PreVote && request.Term > r.Term
	response := Message{Kind: request.Kind + 1, Term: r.Term, Vote: Rejected}
	if free && request.LastLogTerm >= r.log {
		response.Term, response.Vote = request.Term, Granted
		if request.Kind == RequestVote {
			r.votedFor = r.Name(from)
			r.heard()
		}
	}
	r.Hold(from, response)
}

// count notes a voter's first answer, and ends the campaign if that decides it. A candidate's own
// vote must be among those that elect it.
func (r *rules) count(from int, answer Vote) {
	if r.granted.Has(from) || r.rejected.Has(from) {
		return
	}
	r.granted.Put(from, answer == Granted)
	r.rejected.Put(from, answer != Granted)
	switch {
	case r.etcd && len(r.Cfg.Order)-r.rejected.Count() < r.Cfg.Elector.QuorumSize():
		r.follow(r.Term, member.Nobody, "votes lost")
	case !r.Quorum(r.granted) || !r.granted.Has(r.Self):
	case r.pre:
		r.campaign("PreVotes of a quorum", false)
	default:
		r.lead()
	}
}
