// Package blazingmq is the elector of BlazingMQ as its authors have it, with and without
// scouting: what this project's own election began as (docs/protocol.md, "Deviations"). Read were
// src/groups/mqb/mqbnet/mqbnet_elector.cpp of github.com/bloomberg/blazingmq at a5b313c, with the
// cases of mqbnet_elector.t.cpp, and for the row without scouting the authors' article (Leader
// Election and State Machine Replication in BlazingMQ).
//
// A node without a leader waits: at first the initial wait, later at random, up to
// MaxRandomWait. Then it scouts: it asks all whether they would vote in the next term. A node
// says yes if it knows no leader and its own term is lower. With a quorum of yeses, its own
// included, it becomes CANDIDATE in that term and proposes itself; when all have answered and it
// has none, it waits again. A follower without a leader votes for any higher term, a candidate
// too; a leader, or who follows one, does not answer: leadership is sticky. A quorum of votes
// makes the LEADER, whose heartbeats all follow that are in its term or below. Where one vote is a
// quorum, a node proposes without scouting, and leads when the time for votes is over.
//
// A leader counts supporters: who voted, and who sent a response to its first heartbeat. It
// gives up, and cedes, when the links to so many of them are lost that no quorum is left, or
// when an answer shows a higher term. A follower gives its leader up when the link to it is
// lost, when the leader cedes, or after the inactivity interval, which it looks at
// twice in each heartbeat period (upstream's default is 1 s of 2 s).
//
// Without scouting, as the article tells it of the time before: after the initial wait there is
// a random one as well; both end with the proposal. Every node votes for a higher term, a leader
// too, and answers No to any other. What a No does the article leaves open; here its term, if it
// is higher, is entered, and a candidate that has all answers and no quorum waits again.
//
// Where it departs: upstream keeps the term in the cluster's ledger; here the disk has it, and no
// message waits for that. Upstream's elector forgets the term when it is disabled, in three of its
// cases, and may vote again in one that it voted in; here the disk goes on having it. Timers are
// those of the scenario, of the same names.
//
// Guaranteed: a leader that keeps its links, and hears of no higher term, is kept: a node in a
// higher term unseats a healthy leader by one answer. Not guaranteed: one leader at a time. Two
// lead where silence and not the link's end shows a partition, since no lease ends. A node that
// votes, restarts before the term is on disk and votes again elects two in one term. A
// supporter whose link was lost at the leader's end alone is never counted again, and a lagging
// node that alone reaches a quorum is never elected.
package blazingmq

import (
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/member"
	"github.com/bmqelect/bmqelect/lsn"
)

// The elector, and what it was before its extension.
var (
	Elector = define("blazingmq", "BlazingMQ",
		"github.com/bloomberg/blazingmq, mqbnet_elector.cpp", "", true)
	WithoutScouting = define("blazingmq-without-scouting", "BlazingMQ without scouting",
		"article of the authors: Leader Election and State Machine Replication in BlazingMQ",
		"; the article leaves open what a No does: here a higher term in it is entered", false)
)

func define(name, title, source, open string, scouts bool) algorithm.Algorithm {
	return algorithm.Algorithm{
		Name:     name,
		Title:    title,
		Source:   source,
		Deviates: "the disk has the term, also after a stop, and no message waits for it" + open,
		New: member.Maker(func(m *member.Member) member.Rules {
			r := &rules{Member: m, scouts: scouts, tentative: member.Nobody}
			r.Term, _ = m.Disk.(lsn.Term)
			r.wait, r.Why = r.After(r.Timing.InitialWait), "enabled"
			if !scouts {
				r.wait = r.After(r.Timing.InitialWait + r.random())
			}
			return r
		}),
	}
}

// Kind tells messages apart.
type Kind uint8

// The messages.
const (
	ElectionProposal Kind = iota
	ElectionResponse
	LeaderHeartbeat
	LeadershipCession
	NodeUnavailable
	HeartbeatResponse
	ScoutingRequest
	ScoutingResponse
)

// String is upstream's name of the message.
func (k Kind) String() string {
	return [...]string{"ElectionProposal", "ElectionResponse", "LeaderHeartbeat",
		"LeadershipCession", "NodeUnavailable", "HeartbeatResponse", "ScoutingRequest",
		"ScoutingResponse"}[k]
}

// Message is any message of the elector.
type Message struct {
	Kind     Kind
	Term     lsn.Term
	WillVote bool // ScoutingResponse; without scouting, ElectionResponse too
}

// rules are those of one node's elector.
type rules struct {
	*member.Member
	scouts bool

	tentative int            // it voted for this one, which has not led yet
	heard     algorithm.Time // the newest heartbeat, or when it voted
	support   member.Set
	scouting  lsn.Term   // that it asks about; 0 for none
	answered  member.Set // that, this node too
	yes       member.Set // of these

	wait, result, check, beat member.Timer
}

func (r *rules) Input(in algorithm.Input) {
	switch in := in.(type) {
	case elector.LinkUp:
		if r.Role == elector.Leader {
			r.say(r.Rank(in.Peer), LeaderHeartbeat)
		}
	case elector.LinkDown:
		r.unavailable(r.Rank(in.Peer))
	case elector.Stop:
		r.say(member.All, NodeUnavailable)
	}
}

func (r *rules) Receive(from int, message algorithm.Message) {
	msg := message.(Message)
	switch msg.Kind {
	case LeaderHeartbeat:
		r.heartbeat(from, msg.Term)
	case LeadershipCession:
		switch {
		case r.Role == elector.Leader && msg.Term <= r.Term:
			r.say(from, LeaderHeartbeat)
		case r.Role == elector.Follower && msg.Term >= r.Term && r.followed() == from:
			r.leaderless("the leader ceded")
		}
	case NodeUnavailable:
		r.unavailable(from)
	case ElectionProposal:
		r.proposal(from, msg.Term)
	case ElectionResponse:
		r.response(from, msg)
	case HeartbeatResponse:
		if r.Role == elector.Leader && msg.Term > r.Term {
			r.give(msg.Term, "a higher term")
		}
	case ScoutingRequest:
		r.Send(from, Message{ScoutingResponse, r.Term,
			r.Leader == member.Nobody && msg.Term > r.Term})
	case ScoutingResponse:
		r.scouted(from, msg.WillVote)
	}
}

// heartbeat follows a leader that is not stale.
func (r *rules) heartbeat(from int, term lsn.Term) {
	led, knows := r.Role == elector.Leader, r.Role == elector.Follower && term == r.Term
	switch {
	case led && term <= r.Term:
		r.say(from, LeaderHeartbeat)
		return
	case term < r.Term:
		r.say(from, HeartbeatResponse)
		return
	case knows && r.Leader == from:
		r.heard = r.Now
		return
	case knows && r.tentative != from && r.followed() != member.Nobody:
		return
	}
	voted := knows && r.tentative == from
	r.follow(term, from, member.Nobody, "heartbeat")
	if led {
		r.say(member.All, LeadershipCession)
	} else if !voted {
		r.vote(from, true) // so that the leader counts it among its supporters
	}
}

// proposal votes for a higher term, unless there is a leader.
func (r *rules) proposal(from int, term lsn.Term) {
	if r.scouts && (r.Leader != member.Nobody || term <= r.Term) {
		return
	}
	yes := term > r.Term
	if yes {
		r.follow(term, member.Nobody, from, "votes")
	}
	r.vote(from, yes)
}

// vote answers a proposal. With scouting there is no No to tell it from.
func (r *rules) vote(candidate int, yes bool) {
	r.Send(candidate, Message{ElectionResponse, r.Term, yes && !r.scouts})
}

// follow watches a leader, or whom it votes for.
func (r *rules) follow(term lsn.Term, leader, tentative int, why string) {
	r.Become(elector.Follower, leader, why)
	r.Term, r.tentative, r.support = term, tentative, member.Set{}
	r.disarm()
	r.heard, r.check = r.Now, r.After(r.Timing.HeartbeatBroadcast/2)
}

func (r *rules) response(from int, msg Message) {
	no := !r.scouts && !msg.WillVote
	switch {
	case msg.Term < r.Term || r.Role == elector.Follower:
	case r.Role == elector.Leader && msg.Term > r.Term:
		r.give(msg.Term, "a higher term")
	case no && msg.Term > r.Term:
		r.Term = msg.Term
		r.leaderless("a higher term")
	case r.support.Has(from):
	default:
		r.support.Put(from, !no)
		r.answered.Put(from, true)
		if r.Role == elector.Leader {
			return
		}
		if r.support.Count() == r.Cfg.Elector.QuorumSize() {
			r.lead()
		} else if !r.scouts && r.answered.Count() == len(r.Cfg.Order) {
			r.leaderless("no quorum of votes")
		}
	}
}

func (r *rules) lead() {
	r.Become(elector.Leader, r.Self, "quorum of votes")
	r.disarm()
	r.beat = r.After(r.Timing.HeartbeatBroadcast)
	r.say(member.All, LeaderHeartbeat)
}

func (r *rules) scouted(from int, yes bool) {
	if r.Role != elector.Follower || r.scouting == 0 {
		return
	}
	r.answered.Put(from, true)
	r.yes.Put(from, yes)
	switch {
	case r.Quorum(r.yes):
		r.propose(r.scouting)
	case r.answered.Count() == len(r.Cfg.Order):
		r.waitAtRandom()
	}
}

// stand is what a wait ends with: scouting, or the proposal.
func (r *rules) stand() {
	if !r.scouts || r.Cfg.Elector.QuorumSize() == 1 {
		r.propose(r.Term + 1)
		return
	}
	r.scouting, r.answered, r.yes = r.Term+1, member.Of(r.Self), member.Of(r.Self)
	r.result = r.After(r.Timing.ScoutingResult)
	r.Broadcast(Message{Kind: ScoutingRequest, Term: r.scouting})
}

func (r *rules) propose(term lsn.Term) {
	r.Become(elector.Candidate, r.Leader, "proposes")
	r.Term, r.support, r.answered = term, member.Of(r.Self), member.Of(r.Self)
	r.disarm()
	r.result = r.After(r.Timing.ElectionResult)
	r.say(member.All, ElectionProposal)
}

// unavailable is the loss of the link to a node.
func (r *rules) unavailable(peer int) {
	if r.Role == elector.Follower {
		if r.followed() == peer {
			r.leaderless("the leader is unavailable")
		}
		r.answered.Put(peer, false)
		r.yes.Put(peer, false)
		return
	}
	r.support.Put(peer, false)
	if r.Role == elector.Leader && !r.Quorum(r.support) {
		r.give(r.Term, "quorum lost")
	}
}

func (r *rules) give(term lsn.Term, why string) {
	r.Term = term
	r.leaderless(why)
	r.say(member.All, LeadershipCession)
}

func (r *rules) leaderless(why string) {
	r.Become(elector.Follower, member.Nobody, why)
	r.tentative = member.Nobody
	r.waitAtRandom()
}

func (r *rules) waitAtRandom() {
	r.disarm()
	r.wait = r.After(r.random())
}

func (r *rules) random() time.Duration {
	return r.Draw(r.Timing.MaxRandomWait/time.Millisecond+1) * time.Millisecond
}

func (r *rules) Tick() algorithm.Time {
	if r.Due(&r.check) {
		r.check = r.After(r.Timing.HeartbeatBroadcast / 2)
		if r.Now.Sub(r.heard) >= r.Timing.Inactivity() {
			r.leaderless("no heartbeat")
		}
	}
	if r.Due(&r.beat) {
		r.say(member.All, LeaderHeartbeat)
		r.beat = r.After(r.Timing.HeartbeatBroadcast)
	}
	if r.Due(&r.result) {
		r.scouting = 0
		switch {
		case r.Role == elector.Follower:
			r.waitAtRandom()
		case r.Quorum(r.support): // one vote is a quorum
			r.lead()
		default:
			r.leaderless("no quorum of votes")
		}
	}
	if r.Due(&r.wait) {
		r.stand()
	}
	r.Save(r.Term)
	return member.Earliest(r.wait, r.result, r.check, r.beat)
}

func (r *rules) disarm() {
	r.wait, r.result, r.check, r.beat = member.Timer{}, member.Timer{}, member.Timer{}, member.Timer{}
	r.scouting = 0
}

// followed is the leader, or whom it voted for; Nobody if there is neither.
func (r *rules) followed() int { return max(r.Leader, r.tentative) }

func (r *rules) say(to int, kind Kind) { r.Send(to, Message{Kind: kind, Term: r.Term}) }
