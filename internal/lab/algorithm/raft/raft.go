package raft

import (
	"fmt"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/member"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/storeliveness"
	"github.com/bmqelect/bmqelect/lsn"
)

// The variants.
var (
	Basic       = define("raft", "Raft", "Ongaro 2014", variant{})
	Etcd        = define("raft-etcd", "Raft of etcd", "etcd-io/raft", variant{etcd: true})
	WithPreVote = define("raft-prevote", "Raft, PreVote", "etcd-io/raft",
		variant{etcd: true, preVote: true})
	WithCheckQuorum = define("raft-checkquorum", "Raft, PreVote and CheckQuorum", "etcd-io/raft",
		variant{etcd: true, preVote: true, checkQuorum: true})
	WithLease = define("raft-lease", "Raft, leader lease", "tikv/tikv, tikv/raft-rs",
		variant{etcd: true, preVote: true, checkQuorum: true, lease: true})
)

type variant struct{ etcd, preVote, checkQuorum, lease, fortify bool }

func define(name, title, source string, v variant) algorithm.Algorithm {
	tuned, deviates := etcd, "a term has one log entry, which comes whole"
	switch {
	case v == (variant{}):
		tuned = dissertation
	case v.fortify:
		tuned = algorithm.OnAnyLink(time.Second, 3) // the source's, for up to 600 ms there and back
		deviates += ", and is sent until it is answered; DeFortifyLeader stops at an entry, " +
			"committed or not; only stores' messages carry a clock; every store asks all others"
	}
	return algorithm.Algorithm{Name: name, Title: title, Source: source, OneLeaderPerTerm: true,
		Leased: v.lease || v.fortify, Tuned: tuned,
		Deviates: deviates,
		New: member.Maker(func(m *member.Member) member.Rules {
			r := &rules{Member: m, variant: v, e: m.Timing.Inactivity()}
			disk, _ := m.Disk.(Disk)
			if v.fortify {
				r.beginFortified(disk)
			}
			r.Term, r.votedFor, r.log = disk.Term, disk.VotedFor, disk.LastLogTerm
			r.restart()
			return r
		}),
	}
}

// dissertation has time-outs of 10 to 20 times the one-way latency, and not below the 150 ms to
// 300 ms that it calls conservative (chapter 9). Of heartbeats it says only that they are more
// frequent; here they are five times as frequent.
func dissertation(t elector.Timing, l algorithm.Link) elector.Timing {
	e := max(10*l.Longest(), 150*time.Millisecond)
	t.HeartbeatBroadcast, t.HeartbeatMissCount = e/5, 5
	return t
}

// etcd has its documentation's heartbeats of a round trip and time-outs of 10, and not below the
// defaults, which are said to suit local networks.
func etcd(t elector.Timing, l algorithm.Link) elector.Timing {
	t.HeartbeatBroadcast, t.HeartbeatMissCount = max(2*l.Longest(), 100*time.Millisecond), 10
	return t
}

// Disk is a node's durable state.
type Disk struct {
	Term        lsn.Term
	VotedFor    algorithm.NodeID // whom it voted for in Term; "" for none
	LastLogTerm lsn.Term         // of the last entry; 0 if there is none

	// With Fortified only.
	Lead      algorithm.NodeID // whom it fortifies; "" for nobody
	LeadEpoch uint64
	Store     *storeliveness.Disk
}

// String is for example "term=3 votedFor=a lastLogTerm=2 lead=a/1".
func (d Disk) String() string {
	text := fmt.Sprintf("term=%d votedFor=%s lastLogTerm=%d", d.Term, d.VotedFor, d.LastLogTerm)
	if d.Store != nil {
		text += fmt.Sprintf(" lead=%s/%d", d.Lead, d.LeadEpoch)
	}
	return text
}

// rules are a node's. In its View a pre-candidate is a candidate in the term that it has not
// left yet.
type rules struct {
	*member.Member
	variant
	e time.Duration // E

	votedFor algorithm.NodeID // in this term; "" for none
	log      lsn.Term         // of the last entry

	since   algorithm.Time // the beginning of the timeout, or of a leader's interval of E
	last    algorithm.Time // likewise, but for campaigns that Fortified leaves out
	timeout time.Duration  // R
	leads   leading        // of a leader
	fort    *fortification // of Fortified

	pre               bool       // a candidate asks for PreVotes
	granted, rejected member.Set // the answers to it
}

func (r *rules) Tick() algorithm.Time {
	wake, disk := elector.Never, Disk{}
	if r.fort != nil {
		if wake = r.tickFortified(); !r.fort.Awake {
			return wake
		}
		disk = Disk{LeadEpoch: r.fort.epoch, Store: r.fort.Disk()}
	}
	if disk.LeadEpoch != 0 {
		disk.Lead = r.Name(r.Leader)
	}
	disk.Term, disk.VotedFor, disk.LastLogTerm = r.Term, r.votedFor, r.log
	r.Save(disk)
	return min(wake, r.deadline())
}

// deadline is when a Tick has something to do.
func (r *rules) deadline() algorithm.Time {
	switch {
	case r.Role == elector.Leader:
		return min(r.leads.beat.When(), r.since.Add(r.e))
	case r.fortifies() || r.fort != nil && !r.fort.Awake:
		return elector.Never
	}
	return r.since.Add(r.timeout)
}

func (r *rules) Input(in algorithm.Input) {
	switch in := in.(type) {
	case elector.Tick:
		switch {
		case r.Now < r.deadline():
		case r.Role == elector.Leader:
			r.tend()
		case r.fort != nil && len(r.Cfg.Order) > 1 && r.fort.Until(nil) <= r.fort.Clock():
			r.since = r.Now // no support of a quorum: etcd's lease goes on from r.last
		case r.preVote:
			r.preCampaign()
		default:
			r.campaign("election timeout", false)
		}
	case elector.Persisted:
		if r.Role == elector.Candidate && !r.pre && r.Saved.(Disk).Term == r.Term {
			r.count(r.Self, Granted)
		}
	case elector.Transfer:
		if r.Role == elector.Leader {
			r.transfer(in)
		}
	}
}

func (r *rules) Receive(from int, message algorithm.Message) {
	if r.fort != nil && (!r.fort.Awake || r.fort.Receive(from, message)) {
		return
	}
	msg, sent, epoch := open(message)
	if msg.Term < r.Term {
		r.answerLower(from, msg)
		return
	}
	if msg.Term > r.Term && !r.admit(from, msg) {
		return
	}
	switch msg.Kind {
	case RequestVote, PreVote:
		r.vote(from, msg)
	case RequestVoteResponse, PreVoteResponse:
		if r.Role == elector.Candidate && r.pre == (msg.Kind == PreVoteResponse) {
			r.count(from, msg.Vote)
		}
	case AppendEntries:
		r.append(from, msg, sent)
	case AppendEntriesResponse:
		if r.Role == elector.Leader {
			r.acknowledge(from, sent)
		}
	case TimeoutNow:
		if r.Role == elector.Follower {
			r.campaign("TimeoutNow", true)
		}
	case FortifyLeader:
		r.accept(from, msg.Kind)
		r.fortify(from)
	case FortifyLeaderResponse:
		if r.Role == elector.Leader {
			r.leads.active.Put(from, true)
			r.fort.by[from] = max(r.fort.by[from], epoch)
		}
	case DeFortifyLeader:
		r.deFortify()
	}
}

// answerLower tells a leader or candidate of a lower term about the higher one. In etcd, a
// candidate finds that out by itself, and without PreVote a leader too.
func (r *rules) answerLower(from int, msg Message) {
	switch {
	case r.etcd && !r.preVote:
	case msg.Kind == AppendEntries, msg.Kind == FortifyLeader:
		r.Hold(from, Message{Kind: AppendEntriesResponse, Term: r.Term})
	case msg.Kind == PreVote, msg.Kind == RequestVote && !r.etcd:
		r.Hold(from, Message{Kind: msg.Kind + 1, Term: r.Term, Vote: Rejected})
	}
}

// admit enters the higher term of msg, unless it is only proposed. It reports whether msg is to
// be looked into.
func (r *rules) admit(from int, msg Message) bool {
	asks := msg.Kind == RequestVote || msg.Kind == PreVote
	proposed := msg.Kind == PreVote || msg.Kind == PreVoteResponse && msg.Vote == Granted
	leads := msg.Kind == AppendEntries || msg.Kind == FortifyLeader
	switch {
	case msg.Transfer:
	case asks && r.inLease():
		return false
	case r.fortifies() && msg.LastLogTerm <= r.Term && !leads && msg.Kind != DeFortifyLeader:
		if r.Role == elector.Leader && !asks && !proposed {
			r.fort.stepsTo = max(r.fort.stepsTo, msg.Term)
		}
		return false
	}
	r.deFortify()
	if proposed {
		return true
	}
	leader := member.Nobody
	if leads {
		leader = from
	}
	r.follow(msg.Term, leader, "higher term in "+msg.Kind.String())
	return true
}

// inLease reports whether a leader was heard so recently that no other may be elected.
func (r *rules) inLease() bool {
	return r.checkQuorum && r.Leader != member.Nobody && (r.fort == nil || r.fort.epoch == 0) &&
		(r.Role == elector.Leader || r.Now.Sub(r.last) < r.e)
}

// append accepts the leader of the present term, and its log.
func (r *rules) append(from int, msg Message, sent algorithm.Time) {
	r.accept(from, msg.Kind)
	r.log = msg.Term
	response := Message{Kind: AppendEntriesResponse, Term: msg.Term}
	if r.lease {
		r.Hold(from, Timed{response, sent})
		return
	}
	r.Hold(from, response)
}

func (r *rules) accept(from int, kind Kind) {
	if r.Role != elector.Follower {
		r.follow(r.Term, from, kind.String())
	}
	if r.Leader == member.Nobody {
		r.Become(elector.Follower, from, kind.String())
	}
	r.heard()
}

// follow is the only way back from every role. In etcd the timeout begins anew with it; in the
// dissertation only a leader's does, who had none.
func (r *rules) follow(term lsn.Term, leader int, why string) {
	if term != r.Term {
		r.Term, r.votedFor = term, ""
	}
	if r.etcd || r.Role == elector.Leader {
		r.restart()
	}
	if r.fort != nil && leader != r.Leader {
		r.fort.epoch = 0
	}
	r.Become(elector.Follower, leader, why)
	r.pre, r.leads = false, leading{}
}

// restart lets the timeout begin anew, and draws it anew.
func (r *rules) restart() { r.since, r.last, r.timeout = r.Now, r.Now, r.e+r.Draw(r.e) }

// heard lets it begin anew for a leader of this term, or for a candidate that got the vote.
func (r *rules) heard() {
	if r.since, r.last = r.Now, r.Now; !r.etcd {
		r.restart()
	}
}
