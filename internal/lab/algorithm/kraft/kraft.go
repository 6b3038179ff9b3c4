// Package kraft is KRaft, the election of Kafka's controllers: Raft with followers that pull
// (KIP-595) and PreVote (KIP-996). Read, of apache/kafka: KafkaRaftClient, QuorumState,
// FollowerState and ProspectiveState at 0bce334, 2026; CandidateState, LeaderState and QuorumConfig
// as stored, undated; ResignedState at e6d2421, 2024; pull request 23168.
//
// The rules:
//   - A follower fetches from its leader. Each answer restarts its fetch time-out F, which is not
//     random. When that ends, the follower is Prospective.
//   - A Prospective member still names its leader. It asks for PreVotes in its own epoch.
//   - A member grants a PreVote to a log as new as its own. A leader grants none. Nor does a
//     follower that has fetched since it became one.
//   - A Prospective member with the PreVotes of a quorum becomes a Candidate in the next epoch, and
//     asks for votes. One that loses, or whose time ends, goes back to its leader.
//   - Without a leader it becomes Unattached. An Unattached member fetches from voters at random.
//   - A voter has one vote in an epoch, for a log as new as its own. It gives none if it knows the
//     epoch's leader.
//   - A request of a higher epoch, even a PreVote, makes Unattached of its receiver. An answer of a
//     higher epoch does so too; if either names the leader, its receiver follows that leader.
//   - Unattached, Prospective and Candidate have a timer of E to 2E. A higher epoch does not
//     restart that timer. When it ends, Unattached and Candidate become Prospective. A Candidate
//     waits for it even if it has lost.
//   - A new leader sends BeginQuorumEpoch to all. It repeats that each F/2 to those that did not
//     fetch since.
//   - A leader from which no quorum fetched within 1.5 F is Resigned. So is one that is asked to
//     resign or to stop. It sends EndQuorumEpoch with its successors, the newest logs first.
//   - The first successor is Prospective at once, and the n-th of m after M/2^(m-n+1).
//   - After E to 2E a Resigned member is Unattached in the next epoch.
//   - Epoch, vote and leader are durable before anything is sent. A leader restarts as Resigned, a
//     Candidate as a Candidate.
//
// F = Timing.Inactivity; E = M = F/2, as in the defaults. Tuned has these: F = 2 s on any link. The
// log is package raft's.
//
// Deviations:
//   - A leader answers a Fetch at once, and the next one comes after HeartbeatBroadcast. The source
//     holds a Fetch for 500 ms if there is no news.
//   - A request is repeated after half of HeartbeatBroadcast, as TCP would; in the source after
//     2 s.
//   - A leader leads while its leadership is being written.
//   - A leader that is told to stop does so at once. It grants no PreVotes after that.
//
// There is one leader in an epoch. An old one may lead for 1.5 F beside it. After a leader resigned
// the first successors lose: the others have fetched from it, and still refuse PreVotes.
package kraft

import (
	"slices"
	"strings"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/member"
	"github.com/bmqelect/bmqelect/lsn"
)

// KRaft is the algorithm.
var KRaft = algorithm.Algorithm{
	Name: "kraft", Title: "KRaft", Source: "apache/kafka, KIP-595, KIP-996", OneLeaderPerTerm: true,
	New:   member.Maker(start),
	Tuned: algorithm.OnAnyLink(500*time.Millisecond, 4),
	Deviates: "a Fetch is not held, but sent later; requests are soon repeated, as TCP would; " +
		"a leader leads while that is written; it stops at once, and grants no PreVotes then",
}

// Message is any of the messages: what a state asks for, or an answer, with Response after that.
type Message struct {
	Kind                string           `codec:"-"`
	Epoch, LastEpoch    lsn.Term         // LastEpoch is that of the sender's log
	Leader              algorithm.NodeID // in Epoch; "" for none that the sender knows
	Refused             bool
	PreferredSuccessors []algorithm.NodeID
}

// Disk is what a member keeps.
type Disk struct {
	Epoch, LastEpoch lsn.Term
	Leader, Voted    algorithm.NodeID // in Epoch
}

// The states.
const (
	follower = iota // Unattached if it has no leader
	prospective
	candidate
	leader
	resigned
)

// asks is what the states ask others for.
var asks = [...]string{"Fetch", "PreVote", "Vote", "BeginQuorumEpoch", "EndQuorumEpoch"}

type rules struct {
	*member.Member
	state   int
	f       time.Duration    // F
	voted   algorithm.NodeID // in this epoch
	log     lsn.Term
	timer   member.Timer // ends the state
	retry   member.Timer // of requests
	fetched bool         // a follower has; a leader needs not
	yes, no member.Set   // votes; of a leader: who fetched for its quorum, and since it last told
	same    member.Set   // who has a leader's log
}

func start(m *member.Member) member.Rules {
	d, _ := m.Disk.(Disk)
	r := &rules{Member: m, f: m.Timing.Inactivity(), voted: d.Voted, log: d.LastEpoch}
	r.Term = d.Epoch
	r.move(d.Epoch, m.Cfg.Rank(d.Leader), r.random(), "start")
	switch m.Cfg.Self() {
	case d.Leader:
		r.enter(resigned, r.random(), "start")
	case d.Voted:
		r.enter(candidate, r.random(), "start")
	}
	return r
}

func (r *rules) random() time.Duration { return r.f/2 + r.Draw(r.f/2) }

// enter begins a state; its requests are sent.
func (r *rules) enter(s int, lasts time.Duration, why string) {
	role := [...]elector.Role{resigned: elector.Follower, leader: elector.Leader,
		follower: elector.Follower, prospective: elector.Candidate, candidate: elector.Candidate}[s]
	r.Become(role, [...]int{r.Leader, r.Leader, member.Nobody, r.Self, r.Self}[s], why)
	r.state, r.timer, r.retry = s, r.After(lasts), r.After(0)
	r.yes, r.no, r.fetched = member.Of(r.Self), member.Set{}, s == leader
}

// move makes a follower of a leader, or Unattached for some time.
func (r *rules) move(epoch lsn.Term, to int, lasts time.Duration, why string) {
	if epoch != r.Term {
		r.Term, r.voted = epoch, ""
	}
	if r.Leader = to; to != member.Nobody {
		lasts = r.f
	}
	r.enter(follower, lasts, why)
}

// send sends a message when all that it tells is durable.
func (r *rules) send(to int, msg Message) {
	if msg.Epoch, msg.LastEpoch = r.Term, r.log; msg.Kind != "PreVote" {
		msg.Leader = r.Name(r.Leader)
	}
	r.Hold(to, msg)
}

func (r *rules) disk() Disk { return Disk{r.Term, r.log, r.Name(r.Leader), r.voted} }

func (r *rules) Tick() algorithm.Time {
	wins, lost := r.Quorum(r.yes), len(r.Cfg.Order)-r.no.Count() < r.Cfg.Elector.QuorumSize()
	switch due := r.Due(&r.timer); {
	case r.state == prospective && wins:
		r.Term, r.voted = r.Term+1, r.Cfg.Self()
		r.enter(candidate, r.random(), "PreVotes of a quorum")
	case r.state == prospective && lost:
		r.move(r.Term, r.Leader, r.random(), "PreVotes refused")
	case r.state == candidate && wins && r.Saved == r.disk():
		r.log, r.same = r.Term, member.Set{}
		r.enter(leader, r.f*3/2, "votes of a quorum")
	case r.state == leader && wins:
		r.timer, r.yes = r.After(r.f*3/2), member.Of(r.Self)
	case !due:
	case r.state == prospective:
		r.move(r.Term, r.Leader, 0, "no quorum answers")
	case r.state == leader:
		r.enter(resigned, r.random(), "no quorum fetches")
	case r.state == resigned:
		r.move(r.Term+1, member.Nobody, 0, "resigned")
	default:
		r.enter(prospective, r.random(), "time-out")
	}
	if r.Due(&r.retry) {
		r.request()
	}
	r.Save(r.disk())
	return member.Earliest(r.timer, r.retry)
}

// request asks those who have not answered for what the state is about.
func (r *rules) request() {
	msg, n := Message{Kind: asks[r.state]}, len(r.Cfg.Order)
	r.retry = r.After(r.Timing.HeartbeatBroadcast / 2)
	some := (r.Self + 1 + int(r.Draw(time.Duration(n-1)))) % n
	for i := range 2 * n {
		if peer := i % n; r.state == resigned && peer != r.Self && r.same.Has(peer) == (i < n) {
			msg.PreferredSuccessors = append(msg.PreferredSuccessors, r.Name(peer))
		}
	}
	for peer := range r.Others {
		fetches := peer == r.Leader || r.Leader == member.Nobody && peer == some
		if r.state == follower && fetches || r.state != follower && !r.yes.Has(peer) && !r.no.Has(peer) {
			r.send(peer, msg)
		}
	}
	if r.state == leader {
		r.retry, r.no = r.After(r.f/2), member.Set{}
	}
}

// Input resigns when that is asked, and before a stop.
func (r *rules) Input(in algorithm.Input) {
	_, stop := in.(elector.Stop)
	if _, resign := in.(elector.Resign); r.state == leader && (resign || stop) {
		r.enter(resigned, r.random(), "resign")
		r.request()
	}
}

func (r *rules) Receive(from int, message algorithm.Message) {
	msg := message.(Message)
	news := msg.Epoch == r.Term && msg.Leader != "" && r.Leader == member.Nobody
	if msg.Kind != "Fetch" && (msg.Epoch > r.Term || news) {
		rest := r.timer.When().Sub(r.Now)
		if r.state == leader || r.state == follower && r.Leader != member.Nobody {
			rest = r.random()
		}
		r.move(msg.Epoch, r.Cfg.Rank(msg.Leader), rest, msg.Kind)
	}
	refused, now := false, msg.Epoch == r.Term
	mine := now && r.state == follower && from == r.Leader
	switch msg.Kind {
	case "PreVote", "Vote":
		refused = !r.grants(r.Name(from), msg)
	case "Fetch":
		if refused = !now || r.state != leader; !refused {
			r.yes.Put(from, true)
			r.no.Put(from, true)
			r.same.Put(from, msg.LastEpoch == r.log)
		}
	case "EndQuorumEpoch":
		if at := slices.Index(msg.PreferredSuccessors, r.Cfg.Self()); mine {
			r.timer = r.After(r.f / 2 >> (len(msg.PreferredSuccessors) - at) * time.Duration(min(at, 1)))
		}
	case "FetchResponse":
		if mine && !msg.Refused {
			r.log, r.fetched, r.timer = msg.LastEpoch, true, r.After(r.f)
			r.retry = r.After(r.Timing.HeartbeatBroadcast)
		}
	case asks[r.state] + "Response":
		if now && r.state != leader {
			r.yes.Put(from, !msg.Refused)
			r.no.Put(from, msg.Refused)
		}
	}
	if !strings.HasSuffix(msg.Kind, "Response") {
		r.send(from, Message{Kind: msg.Kind + "Response", Refused: refused})
	}
}

// grants decides on a PreVote or a vote. A vote begins the state anew.
func (r *rules) grants(name algorithm.NodeID, msg Message) bool {
	now, fresh := msg.Epoch == r.Term, msg.LastEpoch >= r.log
	switch {
	case msg.Kind == "PreVote":
		return now && fresh && !r.fetched
	case now && fresh && r.voted == "" && r.Leader == member.Nobody:
		r.voted = name
		r.enter(r.state, r.random(), r.Why)
	}
	return now && r.voted == name
}
