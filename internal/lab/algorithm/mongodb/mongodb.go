// Package mongodb is the election of a MongoDB replica set, protocol version 1. Read, of
// mongodb/mongo: topology_coordinator at 0178cdf; replication_coordinator_impl and elect_v1 at
// 00283e9, 2017; vote_requester at 01a7a61; the heartbeats', repl_set_config and
// data_replicator_external_state_impl as stored, undated. Recalled: what a member does when one
// says that it is the primary, and the hand-over at a stop.
//
// The rules:
//   - Each member sends a heartbeat to all others each HeartbeatBroadcast, and four times as often
//     while it knows no primary.
//   - A member is up if it answered within T. The primary is the member that is up and claims to
//     be; of several, the one with the highest term.
//   - A member stands if its term's primary did not answer it for T and up to 15 % more. It must
//     see a majority up.
//   - It first asks in its present term whether it would win. That is a dry run, and binds nobody.
//     Then it enters the next term and asks for votes.
//   - An election is lost if all have answered without a majority, or if it takes longer than T.
//   - A voter enters the candidate's term if that is higher. It has one vote a term, which is
//     durable, for an oplog as new as its own. It votes even if it sees a primary.
//   - A primary steps down for a higher term, in an answer or a request for votes. A heartbeat
//     tells no term.
//   - A primary steps down when a member was silent for T and no majority is up. A heartbeat of
//     that member ends its silence.
//   - A member copies the oplog of anybody who is ahead.
//   - A member that has not heard the primary for two heartbeats longer than another one takes that
//     one's word, and waits. In the source it syncs from that one.
//   - Priority takeover. A member with a higher elector.Config.Priority than the primary's stands
//     although there is one. It waits for (k + 1) T and up to 15 % more after the primary's answer,
//     where k members have a higher priority still.
//   - Step-down, by hand or before a stop. The first member that is up and has the oplog stands,
//     without a dry run. The old primary does not stand for 6 T.
//
// T = Timing.Inactivity. Tuned has the defaults: T = 10 s, heartbeats of 2 s, on any link. The log
// is package raft's.
//
// Deviations:
//   - The oplog comes with the answers to heartbeats. So whoever takes over has the newest one,
//     which the source has to ask for.
//   - A heartbeat does not wait for the answer to the one before.
//   - A new primary does not catch up, so there is no catch-up takeover.
//
// There is one primary in a term. An old one may lead beside it for T, or for as long as it hears
// the others and they do not hear it. A member that hears neither the primary nor anybody who does
// unseats the primary.
package mongodb

import (
	"cmp"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/member"
	"github.com/bmqelect/bmqelect/lsn"
)

// ReplicaSet is the algorithm.
var ReplicaSet = algorithm.Algorithm{
	Name: "mongodb", Title: "MongoDB", Source: "mongodb/mongo, protocol version 1",
	New: member.Maker(start), OneLeaderPerTerm: true, Tuned: algorithm.OnAnyLink(2*time.Second, 5),
	Deviates: "the oplog comes with heartbeats, which wait for no answers; no catch-up, " +
		"nor takeover in it",
}

// Message is any of the messages, of which Kind is the name.
type Message struct {
	Kind            string           `codec:"-"`
	Term, OpTime    lsn.Term         // OpTime is the term of the sender's last oplog entry
	Primary         algorithm.NodeID // whom the sender hears
	Age             time.Duration    // since it did
	Priority        int
	DryRun, Granted bool
}

// Disk is what a member keeps: the term of its last vote, and of its last oplog entry.
type Disk struct{ LastVote, OpTime lsn.Term }

type rules struct {
	*member.Member
	t                                 time.Duration // T
	disk                              Disk
	answers                           []Message      // by rank: to the last heartbeat
	up                                member.Set     // who answered within T
	word, frozen                      algorithm.Time // of a primary; before which it does not stand
	above                             int            // how many have a higher priority
	dry                               bool           // run of a candidate
	yes, no                           member.Set     // votes
	upFor, silence                    []member.Timer // by rank
	beat, timeout, takeover, election member.Timer
}

func start(m *member.Member) member.Rules {
	n := len(m.Cfg.Order)
	r := &rules{Member: m, t: m.Timing.Inactivity(), up: member.Of(m.Self), word: m.Now, frozen: m.Now,
		answers: make([]Message, n), upFor: make([]member.Timer, n), silence: make([]member.Timer, n)}
	r.disk, _ = m.Disk.(Disk)
	r.Term, r.beat, r.timeout = max(r.disk.LastVote, r.disk.OpTime), r.After(0), r.offset(1)
	return r
}

// offset is a timer of n T, and up to 15 % of T more.
func (r *rules) offset(n int) member.Timer {
	return r.After(time.Duration(n)*r.t + r.Draw(r.t*15/100))
}

// say sends a message when all that it tells is durable.
func (r *rules) say(to int, msg Message) {
	msg.Term, msg.OpTime, msg.Priority = r.Term, r.disk.OpTime, r.Cfg.Elector.Priority
	if msg.Primary = r.Name(r.Leader); r.Role != elector.Leader && msg.Primary != "" {
		msg.Age = r.Now.Sub(r.word)
	}
	r.Hold(to, msg)
}

func (r *rules) Tick() algorithm.Time {
	r.watch()
	switch candidate := r.Role == elector.Candidate; {
	case candidate && r.Quorum(r.yes) && r.dry:
		r.run(false)
	case candidate && r.Quorum(r.yes) && r.Saved == r.disk:
		r.Become(elector.Leader, r.Self, "votes of a majority")
		r.disk.OpTime, r.beat = r.Term, r.After(0)
		r.timeout, r.election = member.Timer{}, member.Timer{}
	case candidate && (r.Due(&r.election) ||
		r.no.Count() > 0 && r.yes.Count()+r.no.Count() == len(r.answers)):
		r.Become(elector.Follower, r.Leader, "election lost")
		r.election = member.Timer{}
	}
	if r.Due(&r.timeout) {
		r.elect("no primary")
	}
	if r.Due(&r.takeover) {
		r.elect("priority takeover")
	}
	if r.Due(&r.beat) {
		r.beat = r.After(r.Timing.HeartbeatBroadcast)
		if r.Leader == member.Nobody {
			r.beat = r.After(min(r.t/2, r.Timing.HeartbeatBroadcast/4))
		}
		r.say(member.All, Message{Kind: "replSetHeartbeat"})
	}
	r.Save(r.disk)
	return min(member.Earliest(r.beat, r.timeout, r.takeover, r.election),
		member.Earliest(r.upFor...), member.Earliest(r.silence...))
}

// watch finds out who is up, and the primary; a primary's silent members may end it.
func (r *rules) watch() {
	primary, term, silent := member.Nobody, lsn.Term(0), false
	r.above = 0
	for rank := range r.Others {
		if r.Due(&r.upFor[rank]) {
			r.up.Put(rank, false)
		}
		silent = r.Due(&r.silence[rank]) || silent
		answer := r.answers[rank]
		if answer.Priority > r.Cfg.Elector.Priority {
			r.above++
		}
		if r.up.Has(rank) && answer.Primary == r.Name(rank) && answer.Term > term {
			primary, term = rank, answer.Term
		}
	}
	if r.Role == elector.Leader && silent && !r.Quorum(r.up) {
		r.end(r.Term, "no majority is up")
	}
	if r.Role != elector.Leader && primary != r.Leader {
		r.Become(r.Role, primary, cmp.Or(r.Why, "heartbeats"))
	}
}

// elect stands, if the member may: with a dry run, unless it was asked to.
func (r *rules) elect(why string) {
	r.timeout, r.takeover = r.offset(1), member.Timer{}
	may := !r.Cfg.Elector.NotCandidate && r.Role == elector.Follower && r.Now >= r.frozen
	if may && r.Quorum(r.up) {
		r.Become(elector.Candidate, r.Leader, why)
		r.run(why != "replSetStepUp")
	}
}

// run asks for votes, dry or in the next term: then the own one is durable first.
func (r *rules) run(dry bool) {
	if !dry {
		r.end(r.Term+1, "dry run")
		r.Role, r.disk.LastVote = elector.Candidate, r.Term
	}
	r.dry, r.yes, r.no, r.election = dry, member.Of(r.Self), member.Set{}, r.After(r.t)
	r.say(member.All, Message{Kind: "replSetRequestVotes", DryRun: dry})
}

// end makes a secondary, perhaps in a higher term.
func (r *rules) end(term lsn.Term, why string) {
	if r.Leader == r.Self {
		r.Leader = member.Nobody
	}
	r.Become(elector.Follower, r.Leader, why)
	r.Term, r.election, r.takeover, r.timeout = term, member.Timer{}, member.Timer{}, r.offset(1)
}

func (r *rules) Receive(from int, message algorithm.Message) {
	msg := message.(Message)
	if r.silence[from] = r.After(r.t); msg.Kind != "replSetHeartbeat" && msg.Term > r.Term {
		r.end(msg.Term, "higher term")
	}
	switch msg.Kind {
	case "replSetHeartbeat":
		if msg.Primary == r.Name(from) && r.Leader != from && msg.Term >= r.Term {
			r.beat = r.After(0)
		}
		r.say(from, Message{Kind: "replSetHeartbeatResponse"})
	case "replSetHeartbeatResponse":
		r.answers[from], r.upFor[from] = msg, r.After(r.t)
		r.up.Put(from, true)
		primary, word := msg.Primary == r.Name(from), r.Now.Add(-msg.Age)
		newer := msg.Primary != "" && word.Sub(r.word) > 2*r.Timing.HeartbeatBroadcast
		if r.Role != elector.Leader {
			r.disk.OpTime = max(r.disk.OpTime, msg.OpTime)
		}
		if r.Role == elector.Leader || msg.Term != r.Term || !primary && !newer {
			return
		}
		r.word, r.timeout = word, r.offset(1)
		if primary && r.Cfg.Elector.Priority > msg.Priority && r.takeover.When() == elector.Never {
			r.takeover = r.offset(r.above + 1)
		}
	case "replSetRequestVotes":
		free := msg.DryRun || r.disk.LastVote < msg.Term
		granted := free && msg.Term == r.Term && msg.OpTime >= r.disk.OpTime
		if granted && !msg.DryRun {
			r.disk.LastVote = msg.Term
		}
		r.say(from, Message{Kind: "replSetRequestVotesResponse", DryRun: msg.DryRun, Granted: granted})
	case "replSetRequestVotesResponse":
		if msg.DryRun == r.dry && msg.Term == r.Term {
			r.yes.Put(from, msg.Granted)
			r.no.Put(from, !msg.Granted)
		}
	case "replSetStepUp":
		r.elect(msg.Kind)
	}
}

// Input hands over, if there is whom to.
func (r *rules) Input(in algorithm.Input) {
	transfer, by := in.(elector.Transfer)
	resign, rests := in.(elector.Resign)
	_, stops := in.(elector.Stop)
	for rank := range r.Others {
		fits := r.up.Has(rank) && r.answers[rank].OpTime == r.disk.OpTime &&
			(transfer.To == "" || transfer.To == r.Name(rank))
		if r.Role == elector.Leader && (by || rests || stops) && fits {
			r.frozen = r.Now.Add(cmp.Or(resign.Rest, 6*r.t))
			r.end(r.Term, "hand-over")
			r.say(rank, Message{Kind: "replSetStepUp"})
		}
	}
}
