// Package hashicorp is leader election as in hashicorp/raft, with its leader lease and PreVote.
// Read: raft.go, replication.go, config.go and util.go at 1837036, June 2026, after v1.7.3.
//
// The rules:
//   - A follower looks back at intervals of H to 2H, drawn anew each time. If no leader was in
//     contact for H, it forgets its leader and stands. A heartbeat does not restart that timer, so
//     a follower misses a dead leader after H to 3H. A vote that it grants counts as contact.
//   - A member that stands first sends PreVote. It asks whether it would win the next term, and
//     does not enter that term yet.
//   - A member refuses a PreVote if it knows a leader other than the asker, if its own term is
//     higher than the one asked about, or if its own log is newer. Its vote does not matter.
//   - A member with the PreVotes of a quorum, its own included, enters the term, votes for itself
//     and asks for votes. Its timer of E to 2E begins anew.
//   - A member that is refused waits for that timer, and stands again.
//   - A candidate that gets an answer with a term above the one it asked about becomes a follower
//     in that term.
//   - A voter that knows a leader refuses all others. It does not enter their term, however high.
//     A leader knows itself. A voter knows a leader until it stands or enters another term.
//   - Any other voter has one vote a term, for a log as new as its own.
//   - A leader that had no answers of a quorum within L, its lease, steps down. It looks when the
//     oldest answer that counts gets too old, but not twice within 10 ms.
//   - A leader steps down for an answer with a higher term. It does not enter that term.
//   - A leader transfers to the voter that was named, or to the first that has the whole log. Once
//     the voter has the log, TimeoutNow lets it stand without PreVote, and voters disregard the
//     leader that they know. No other transfer begins for E.
//
// H = E = Timing.Inactivity, and L = H/2, as in the defaults. These are for any link, and Tuned has
// them. A leader sends heartbeats at intervals of H/10 to H/5. It sends AppendEntries for the
// commit index, also without entries, at intervals of H/20 to H/10. Messages and log are package
// raft's.
//
// Deviations:
//   - Both streams bring the log and find higher terms. In the source only the second does.
//   - Each stream has one timer for all peers, and waits for no answers. The source has a timer a
//     peer, waits for the answer, and backs off after heartbeats that failed.
//   - A PreVote counts for a later attempt at its term, too.
//
// There is one leader in a term. Two lead at once only if an answer takes longer than H - L, or if
// the old leader was paused. A voter with an old log that alone reaches a quorum leaves the
// cluster without a leader.
package hashicorp

import (
	"slices"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/member"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/raft"
	"github.com/bmqelect/bmqelect/lsn"
)

// Raft is the algorithm.
var Raft = algorithm.Algorithm{
	Name: "hashicorp-raft", Title: "hashicorp/raft", Source: "hashicorp/raft, after v1.7.3",
	OneLeaderPerTerm: true,
	New:              member.Maker(begin),
	Tuned:            algorithm.OnAnyLink(100*time.Millisecond, 10),
	Deviates: "both streams bring the log and find higher terms, with one timer for all " +
		"peers and no back-off; a PreVote counts for a later attempt",
}

type rules struct {
	*member.Member
	h       time.Duration // H, and E
	disk    raft.Disk
	contact algorithm.Time // the last with a leader, or with a candidate that has the vote
	timer   member.Timer   // of a leader it is the lease's
	pre     bool           // a candidate asks for PreVotes
	votes   member.Set     // or PreVotes

	// Of a leader.
	streams  [2]member.Timer  // of heartbeats, and for the commit index
	answered []algorithm.Time // by rank
	matched  member.Set       // who has the log
	target   int              // of a transfer; Nobody when it was told
	until    algorithm.Time   // the transfer is over
}

func begin(m *member.Member) member.Rules {
	r := &rules{Member: m, h: m.Timing.Inactivity()}
	r.disk, _ = m.Disk.(raft.Disk)
	r.contact, r.timer = m.Now.Add(-r.h), r.random(r.h)
	r.follow(r.disk.Term, "start")
	return r
}

func (r *rules) random(d time.Duration) member.Timer { return r.After(d + r.Draw(d)) }

func (r *rules) Tick() algorithm.Time {
	if r.Role == elector.Candidate && !r.pre && r.Saved == r.disk {
		r.votes.Put(r.Self, true)
	}
	if r.Due(&r.timer) {
		r.timeOut()
	}
	switch {
	case r.Role != elector.Candidate || !r.Quorum(r.votes):
	case r.pre:
		r.stand("PreVotes of a quorum", false)
	default:
		r.lead()
	}
	for i := range r.streams {
		if r.Due(&r.streams[i]) {
			r.streams[i] = r.random(r.h / time.Duration(10*(i+1)))
			r.Hold(member.All, raft.Message{Kind: raft.AppendEntries, Term: r.Term})
		}
	}
	if r.Role == elector.Leader && r.Now < r.until && r.matched.Has(r.target) {
		r.Hold(r.target, raft.Message{Kind: raft.TimeoutNow, Term: r.Term})
		r.target = member.Nobody
	}
	r.Save(r.disk)
	return min(r.timer.When(), member.Earliest(r.streams[:]...))
}

func (r *rules) timeOut() {
	switch {
	case r.Role == elector.Leader:
		r.lease()
	case r.Role == elector.Follower && r.Now.Sub(r.contact) < r.h:
		r.timer = r.random(r.h)
	default:
		r.Become(elector.Candidate, member.Nobody, "no contact with a leader")
		r.pre, r.votes = true, member.Of(r.Self)
		r.ask(raft.Message{Kind: raft.PreVote, Term: r.Term + 1})
	}
}

// stand enters the next term and asks for votes. The own one counts once it is durable.
func (r *rules) stand(why string, transfer bool) {
	r.follow(r.Term+1, why)
	r.Role, r.disk.VotedFor, r.pre, r.votes = elector.Candidate, r.Cfg.Self(), false, member.Set{}
	r.ask(raft.Message{Kind: raft.RequestVote, Term: r.Term, Transfer: transfer})
}

func (r *rules) ask(request raft.Message) {
	request.LastLogTerm, r.timer = r.disk.LastLogTerm, r.random(r.h)
	r.Hold(member.All, request)
}

// follow makes a follower that knows no leader yet. A candidate or leader restarts its timer.
func (r *rules) follow(term lsn.Term, why string) {
	if r.Role == elector.Leader {
		r.contact = r.Now
	}
	if r.Role != elector.Follower {
		r.timer, r.streams = r.random(r.h), [2]member.Timer{}
	}
	if term != r.disk.Term {
		r.disk.Term, r.disk.VotedFor = term, ""
	}
	r.Term = term
	r.Become(elector.Follower, member.Nobody, why)
}

func (r *rules) lead() {
	r.Become(elector.Leader, r.Self, "votes of a quorum")
	r.disk.LastLogTerm, r.matched, r.until = r.Term, member.Set{}, r.Now
	r.answered = slices.Repeat([]algorithm.Time{r.Now}, len(r.Cfg.Order))
	r.streams, r.timer = [2]member.Timer{r.After(0), r.random(r.h / 20)}, r.After(r.h/2)
}

// lease steps down if no quorum answered within L.
func (r *rules) lease() {
	recent, oldest := member.Of(r.Self), r.Now
	for peer := range r.Others {
		if r.Now.Sub(r.answered[peer]) <= r.h/2 {
			recent.Put(peer, true)
			oldest = min(oldest, r.answered[peer])
		}
	}
	r.timer = r.After(max(10*time.Millisecond, r.h/2-r.Now.Sub(oldest)))
	if !r.Quorum(recent) {
		r.follow(r.Term, "leader lease timeout")
	}
}

func (r *rules) Receive(from int, message algorithm.Message) {
	msg := message.(raft.Message)
	switch msg.Kind {
	case raft.PreVote, raft.RequestVote:
		r.vote(from, msg)
	case raft.PreVoteResponse:
		r.count(from, msg, r.Term+1, r.pre)
	case raft.RequestVoteResponse:
		r.count(from, msg, r.Term, !r.pre && msg.Term == r.Term)
	case raft.AppendEntries:
		r.append(from, msg)
	case raft.AppendEntriesResponse:
		if r.Role == elector.Leader && msg.Term > r.Term {
			r.follow(r.Term, "higher term in an answer")
		} else if r.Role == elector.Leader && msg.Term == r.Term {
			r.answered[from] = r.Now
			r.matched.Put(from, true)
		}
	case raft.TimeoutNow:
		r.stand("TimeoutNow", true)
	}
}

// vote answers a candidate, or one that stands. An answer to the latter binds nobody.
func (r *rules) vote(from int, msg raft.Message) {
	answer := raft.Message{Kind: msg.Kind + 1, Term: r.Term, Vote: raft.Rejected}
	real := msg.Kind == raft.RequestVote
	if (r.Leader == member.Nobody || r.Leader == from || msg.Transfer) && msg.Term >= r.Term {
		if real && msg.Term > r.Term {
			r.follow(msg.Term, "higher term in RequestVote")
		}
		answer.Term = msg.Term
		free := !real || r.disk.VotedFor == ""
		if free && msg.LastLogTerm >= r.disk.LastLogTerm || real && r.disk.VotedFor == r.Name(from) {
			answer.Vote = raft.Granted
		}
		if free && real && answer.Vote == raft.Granted {
			r.disk.VotedFor, r.contact = r.Name(from), r.Now
		}
	}
	r.Hold(from, answer)
}

// count takes the answer of a voter that was asked about a term.
func (r *rules) count(from int, msg raft.Message, asked lsn.Term, counts bool) {
	switch {
	case r.Role != elector.Candidate:
	case msg.Term > asked:
		r.follow(msg.Term, "higher term in an answer")
	case counts && msg.Vote == raft.Granted:
		r.votes.Put(from, true)
	}
}

func (r *rules) append(from int, msg raft.Message) {
	if msg.Term >= r.Term {
		if msg.Term > r.Term || r.Role != elector.Follower {
			r.follow(msg.Term, "AppendEntries")
		}
		r.Become(elector.Follower, from, "AppendEntries")
		r.contact, r.disk.LastLogTerm = r.Now, msg.Term
	}
	r.Hold(from, raft.Message{Kind: raft.AppendEntriesResponse, Term: r.Term})
}

// Input hands over as elector.Transfer says.
func (r *rules) Input(in algorithm.Input) {
	ask, is := in.(elector.Transfer)
	if !is || r.Role != elector.Leader || r.Now < r.until {
		return
	}
	for peer := range r.Others {
		if ask.To == r.Name(peer) || ask.To == "" && r.matched.Has(peer) {
			r.target, r.until = peer, r.Now.Add(r.h)
			return
		}
	}
}
