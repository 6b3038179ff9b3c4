package raft

import (
	"fmt"
	"math/bits"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/lsn"
)

// The variants.
var (
	Basic           = variant("raft", "Raft", "Ongaro 2014", rules{})
	WithPreVote     = variant("raft-prevote", "Raft, PreVote", "etcd-io/raft", rules{preVote: true})
	WithCheckQuorum = variant("raft-checkquorum", "Raft, PreVote and CheckQuorum", "etcd-io/raft",
		rules{preVote: true, checkQuorum: true})
)

type rules struct{ preVote, checkQuorum bool }

func variant(name, title, source string, r rules) algorithm.Algorithm {
	return algorithm.Algorithm{Name: name, Title: title, Source: source, OneLeaderPerTerm: true,
		New: func(cfg algorithm.Config) algorithm.Machine {
			return &machine{cfg: cfg, peers: cfg.Peers(), rules: r}
		},
	}
}

// Disk is a node's durable state.
type Disk struct {
	Term        lsn.Term
	VotedFor    algorithm.NodeID // whom it voted for in Term; "" for none
	LastLogTerm lsn.Term         // of the last entry; 0 if there is none
}

// String is for example "term=3 votedFor=a lastLogTerm=2".
func (d Disk) String() string {
	return fmt.Sprintf("term=%d votedFor=%s lastLogTerm=%d", d.Term, d.VotedFor, d.LastLogTerm)
}

type machine struct {
	cfg   algorithm.Config
	peers []algorithm.NodeID
	rules rules

	disk    Disk
	role    elector.Role
	pre     bool             // a candidate asks for PreVotes
	leader  algorithm.NodeID // "" if it knows none
	since   algorithm.Time   // the beginning of the timeout, or of a leader's interval of E
	timeout time.Duration    // R
	votes   []answer         // to a candidate or pre-candidate, by rank; the first one counts
	leads   leaderState      // of a leader

	written Disk                 // what was last given to the disk
	writing bool                 // and is not durable yet
	held    []algorithm.Envelope // answers for after the next write

	// Of the present step.
	now     algorithm.Time
	entropy uint64
	out     algorithm.Effects
}

// View implements algorithm.Machine. A pre-candidate is a candidate in the term that it has not
// left yet.
func (m *machine) View() algorithm.View {
	return algorithm.View{Role: m.role, Leader: m.leader, Term: m.disk.Term}
}

// Step implements algorithm.Machine.
func (m *machine) Step(now algorithm.Time, entropy uint64, in algorithm.Input) algorithm.Effects {
	m.now, m.entropy = now, entropy
	m.out = algorithm.Effects{Messages: m.out.Messages[:0], Durable: m.out.Durable[:0]}
	if start, ok := in.(algorithm.Start); ok {
		m.disk, _ = start.Disk.(Disk)
		m.written = m.disk
		m.becomeFollower(m.disk.Term, "", "start")
	} else if m.role != elector.Dormant {
		m.take(in)
	}
	m.save()
	m.out.Wake = m.deadline()
	return m.out
}

// save has the state written, and the answers sent after that. There is one write at a time; the
// next one has all that has changed meanwhile.
func (m *machine) save() {
	if m.writing {
		return
	}
	if m.disk != m.written {
		m.written, m.writing, m.out.Persist = m.disk, true, m.disk
	}
	m.out.Durable, m.held = m.held, m.out.Durable
}

func (m *machine) take(in algorithm.Input) {
	switch in := in.(type) {
	case elector.Tick:
		m.tick()
	case algorithm.Received:
		m.receive(in.From, in.Message.(Message))
	case elector.Persisted:
		m.writing = false
		if m.role == elector.Candidate && !m.pre && m.written.Term == m.disk.Term {
			m.count(m.cfg.Self(), true)
		}
	case elector.Transfer:
		if m.role == elector.Leader {
			m.transfer(in.To)
		}
	case elector.Stop:
		m.role, m.leader, m.out.Why = elector.Dormant, "", "stop"
	}
}

func (m *machine) tick() {
	switch {
	case m.now < m.deadline():
	case m.role == elector.Leader:
		m.lead()
	case m.rules.preVote:
		m.preCampaign()
	default:
		m.becomeCandidate("election timeout", false)
	}
}

// deadline is when tick has something to do.
func (m *machine) deadline() algorithm.Time {
	switch {
	case m.role == elector.Leader:
		return min(m.leads.beat, m.since.Add(m.base()))
	case m.role == elector.Dormant:
		return elector.Never
	}
	return m.since.Add(m.timeout)
}

// base is E.
func (m *machine) base() time.Duration { return m.cfg.Elector.Timing.Inactivity() }

func (m *machine) receive(from algorithm.NodeID, msg Message) {
	if msg.Term < m.disk.Term {
		m.answerLower(from, msg)
		return
	}
	if msg.Term > m.disk.Term && !m.admit(from, msg) {
		return
	}
	switch msg.Kind {
	case RequestVote, PreVote:
		m.vote(from, msg)
	case RequestVoteResponse, PreVoteResponse:
		if m.role == elector.Candidate && m.pre == (msg.Kind == PreVoteResponse) {
			m.count(from, msg.Granted)
		}
	case AppendEntries:
		m.follow(from, msg)
	case AppendEntriesResponse:
		if m.role == elector.Leader {
			m.acknowledge(from)
		}
	case TimeoutNow:
		if m.role == elector.Follower {
			m.becomeCandidate("TimeoutNow", true)
		}
	}
}

// answerLower tells a leader or candidate of a lower term about the higher one. As in etcd, a
// candidate finds that out by itself where there is PreVote.
func (m *machine) answerLower(from algorithm.NodeID, msg Message) {
	switch {
	case msg.Kind == AppendEntries:
		m.answer(from, Message{Kind: AppendEntriesResponse, Term: m.disk.Term})
	case msg.Kind == PreVote, msg.Kind == RequestVote && !m.rules.preVote:
		m.answer(from, Message{Kind: msg.Kind + 1, Term: m.disk.Term})
	}
}

// admit enters the higher term of msg, unless it is only proposed. It reports whether msg is to
// be looked into.
func (m *machine) admit(from algorithm.NodeID, msg Message) bool {
	asks := msg.Kind == RequestVote || msg.Kind == PreVote
	if asks && !msg.Transfer && m.inLease() {
		return false
	}
	if msg.Kind == PreVote || msg.Kind == PreVoteResponse && msg.Granted {
		return true
	}
	leader := algorithm.NodeID("")
	if msg.Kind == AppendEntries {
		leader = from
	}
	m.becomeFollower(msg.Term, leader, "higher term in "+msg.Name())
	return true
}

// inLease reports whether a leader was heard so recently that no other may be elected.
func (m *machine) inLease() bool {
	return m.rules.checkQuorum && m.leader != "" &&
		(m.role == elector.Leader || m.now.Sub(m.since) < m.base())
}

// follow accepts the leader of the present term, and its log.
func (m *machine) follow(from algorithm.NodeID, msg Message) {
	if m.role != elector.Follower {
		m.becomeFollower(msg.Term, from, "AppendEntries")
	}
	if m.leader == "" {
		m.leader, m.out.Why = from, "AppendEntries"
	}
	m.since, m.disk.LastLogTerm = m.now, msg.Term
	m.answer(from, Message{Kind: AppendEntriesResponse, Term: msg.Term})
}

// becomeFollower is the only way back from every role. The timeout begins anew, and is drawn
// anew.
func (m *machine) becomeFollower(term lsn.Term, leader algorithm.NodeID, why string) {
	if term != m.disk.Term {
		m.disk.Term, m.disk.VotedFor = term, ""
	}
	m.role, m.pre, m.leader, m.out.Why = elector.Follower, false, leader, why
	m.votes, m.leads = nil, leaderState{}
	random, _ := bits.Mul64(m.entropy, uint64(m.base()))
	m.since, m.timeout = m.now, m.base()+time.Duration(random)
}

func (m *machine) send(to algorithm.NodeID, msg Message) {
	m.out.Messages = append(m.out.Messages, algorithm.Envelope{To: to, Message: msg})
}

// answer sends what the state on disk must back.
func (m *machine) answer(to algorithm.NodeID, msg Message) {
	m.held = append(m.held, algorithm.Envelope{To: to, Message: msg})
}
