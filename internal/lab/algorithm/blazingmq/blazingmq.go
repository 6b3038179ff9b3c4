// Package blazingmq is the elector of BlazingMQ as its authors have it, with and without
// scouting: what this project's own election began as (docs/protocol.md, "Deviations").
// Source: src/groups/mqb/mqbnet/mqbnet_elector.cpp of github.com/bloomberg/blazingmq.
//
// A node without a leader waits: at first the initial wait, later at random, up to
// MaxRandomWait. Then it scouts: it asks all whether they would vote in the next term. A node
// says yes if it knows no leader and its own term is lower. With a quorum of yeses, its own
// included, it becomes CANDIDATE in that term and proposes itself. A follower without a leader
// votes for any higher term, a candidate too; a leader, or who follows one, does not answer:
// leadership is sticky. A quorum of votes makes the LEADER, whose heartbeats all follow that
// are in its term or below. Without scouting, as the article tells it of the time before, the
// wait ends with the proposal, and every node votes for a higher term, a leader too.
//
// A leader counts supporters: who voted, and who sent a response to its first heartbeat. It
// gives up, and cedes, when the links to so many of them are lost that no quorum is left, or
// when an answer shows a higher term. A follower gives its leader up when the link to it is
// lost, when the leader cedes, or after the inactivity interval, which it looks at
// twice in each heartbeat period (upstream's default is 1 s of 2 s).
//
// Upstream keeps the term in the cluster's ledger; here the disk has it, and no message waits
// for that. Timers are those of the scenario, of the same names.
//
// Guaranteed: a leader that keeps its links, and hears of no higher term, is kept: a node in a
// higher term unseats a healthy leader by one answer. Not guaranteed: one leader at a time. Two
// lead where silence and not the link's end shows a partition, since no lease ends. A node that
// votes, restarts before the term is on disk and votes again elects two in one term. A
// supporter whose link was lost at the leader's end alone is never counted again, and a lagging
// node that alone reaches a quorum is never elected.
package blazingmq

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/lsn"
)

// The elector, and what it was before its extension.
var (
	Elector         = variant("blazingmq", "BlazingMQ", true)
	WithoutScouting = variant("blazingmq-without-scouting", "BlazingMQ without scouting", false)
)

func variant(name, title string, scouting bool) algorithm.Algorithm {
	return algorithm.Algorithm{
		Name:   name,
		Title:  title,
		Source: "github.com/bloomberg/blazingmq, mqbnet_elector.cpp",
		New: func(c algorithm.Config) algorithm.Machine {
			return &machine{config: c, timing: c.Elector.Timing, peers: c.Peers(), scouts: scouting}
		},
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

var kindNames = [...]string{"ElectionProposal", "ElectionResponse", "LeaderHeartbeat",
	"LeadershipCession", "NodeUnavailable", "HeartbeatResponse", "ScoutingRequest", "ScoutingResponse"}

// Message is any message of the elector.
type Message struct {
	Kind     Kind
	Term     lsn.Term
	WillVote bool // ScoutingResponse
}

// Name is upstream's name of the message.
func (m Message) Name() string { return kindNames[min(int(m.Kind), len(kindNames)-1)] }

func (m Message) String() string {
	text := fmt.Sprintf("%s term=%d", m.Name(), m.Term)
	if m.WillVote {
		text += " yes"
	}
	return text
}

// machine is one node's elector. A deadline of 0 is not armed.
type machine struct {
	config algorithm.Config
	timing elector.Timing
	peers  []algorithm.NodeID
	scouts bool

	role      elector.Role
	term      lsn.Term
	leader    algorithm.NodeID
	tentative algorithm.NodeID // it voted for this one, which has not led yet
	heard     algorithm.Time   // the newest heartbeat, or when it voted
	support   []algorithm.NodeID
	scouting  lsn.Term // that it asks about; 0 for none
	answers   map[algorithm.NodeID]bool

	wait, result, check, beat algorithm.Time
	entropy                   uint64
	eff                       algorithm.Effects
}

func (m *machine) View() algorithm.View {
	return algorithm.View{Role: m.role, Leader: m.leader, Term: m.term}
}

func (m *machine) Step(now algorithm.Time, entropy uint64, in algorithm.Input) algorithm.Effects {
	m.eff = algorithm.Effects{Messages: m.eff.Messages[:0]}
	m.entropy = entropy
	term := m.term
	switch in := in.(type) {
	case algorithm.Start:
		disk, _ := in.Disk.(lsn.Term)
		m.term, m.role = disk, elector.Follower
		m.wait = now.Add(m.timing.InitialWait)
		m.eff.Why = "enabled"
		term = m.term
	case algorithm.Received:
		if msg, ok := in.Message.(Message); ok && m.role != elector.Dormant {
			m.receive(now, in.From, msg)
		}
	case elector.LinkUp:
		if m.role == elector.Leader {
			m.say(in.Peer, LeaderHeartbeat)
		}
	case elector.LinkDown:
		m.unavailable(now, in.Peer)
	case elector.Stop:
		m.say(elector.AllMembers, NodeUnavailable)
		m.role, m.leader, m.tentative = elector.Dormant, "", ""
		m.disarm()
		m.eff.Why = "disabled"
	}
	m.tick(now)
	if m.term != term {
		m.eff.Persist = m.term
	}
	m.eff.Wake = m.next()
	return m.eff
}

// receive acts on a message.
func (m *machine) receive(now algorithm.Time, from algorithm.NodeID, msg Message) {
	switch msg.Kind {
	case LeaderHeartbeat:
		m.heartbeat(now, from, msg.Term)
	case LeadershipCession:
		switch {
		case m.role == elector.Leader && msg.Term <= m.term:
			m.say(from, LeaderHeartbeat)
		case m.role == elector.Follower && msg.Term >= m.term && m.followed() == from:
			m.leaderless(now, "the leader ceded")
		}
	case NodeUnavailable:
		m.unavailable(now, from)
	case ElectionProposal:
		m.proposal(now, from, msg.Term)
	case ElectionResponse:
		m.response(now, from, msg.Term)
	case HeartbeatResponse:
		if m.role == elector.Leader && msg.Term > m.term {
			m.preempted(now, msg.Term)
		}
	case ScoutingRequest:
		m.sayIn(from, Message{ScoutingResponse, m.term, m.leader == "" && msg.Term > m.term})
	case ScoutingResponse:
		m.scouted(now, from, msg.WillVote)
	}
}

// heartbeat follows a leader that is not stale.
func (m *machine) heartbeat(now algorithm.Time, from algorithm.NodeID, term lsn.Term) {
	switch {
	case m.role == elector.Leader && term <= m.term:
		m.say(from, LeaderHeartbeat)
		return
	case term < m.term:
		m.say(from, HeartbeatResponse)
		return
	case m.role == elector.Follower && term == m.term && m.leader == from:
		m.heard = now
		return
	case m.role == elector.Follower && term == m.term && m.tentative != from && m.followed() != "":
		return
	}
	led := m.role == elector.Leader
	voted := m.role == elector.Follower && term == m.term && m.tentative == from
	m.role, m.term, m.leader, m.tentative, m.support = elector.Follower, term, from, "", m.support[:0]
	m.follow(now)
	m.eff.Why = "heartbeat"
	if led {
		m.say(elector.AllMembers, LeadershipCession)
	} else if !voted {
		m.say(from, ElectionResponse) // so that the leader counts it among its supporters
	}
}

// proposal votes for a higher term, unless there is a leader.
func (m *machine) proposal(now algorithm.Time, from algorithm.NodeID, term lsn.Term) {
	if m.scouts && m.leader != "" || term <= m.term {
		return
	}
	m.eff.Why = "votes"
	m.role, m.term, m.leader, m.tentative = elector.Follower, term, "", from
	m.support = m.support[:0]
	m.follow(now)
	m.say(from, ElectionResponse)
}

// response counts a vote.
func (m *machine) response(now algorithm.Time, from algorithm.NodeID, term lsn.Term) {
	switch {
	case term < m.term || m.role == elector.Follower:
	case m.role == elector.Leader && term > m.term:
		m.preempted(now, term)
	case !slices.Contains(m.support, from):
		m.support = append(m.support, from)
		m.elected(now)
	}
}

// elected makes a candidate with a quorum the leader.
func (m *machine) elected(now algorithm.Time) {
	if m.role != elector.Candidate || len(m.support) < m.config.Elector.QuorumSize() {
		return
	}
	m.role, m.leader = elector.Leader, m.config.Self()
	m.disarm()
	m.beat = now.Add(m.timing.HeartbeatBroadcast)
	m.say(elector.AllMembers, LeaderHeartbeat)
	m.eff.Why = "quorum of votes"
}

// scouted counts an answer to the scouting.
func (m *machine) scouted(now algorithm.Time, from algorithm.NodeID, yes bool) {
	if m.role != elector.Follower || m.followed() != "" || m.scouting == 0 {
		return
	}
	m.answers[from] = yes
	switch {
	case m.yeses() >= m.config.Elector.QuorumSize():
		m.propose(now, m.scouting)
	case len(m.answers) == len(m.peers)+1:
		m.waitAtRandom(now)
	}
}

func (m *machine) yeses() (n int) {
	for _, yes := range m.answers {
		if yes {
			n++
		}
	}
	return n
}

// stand is what a wait ends with: scouting, or the proposal.
func (m *machine) stand(now algorithm.Time) {
	if m.followed() != "" {
		return
	}
	if !m.scouts || m.config.Elector.QuorumSize() == 1 {
		m.propose(now, m.term+1)
		return
	}
	m.scouting = m.term + 1
	m.answers = map[algorithm.NodeID]bool{m.config.Self(): true}
	m.result = now.Add(m.timing.ScoutingResult)
	m.sayIn(elector.AllMembers, Message{Kind: ScoutingRequest, Term: m.scouting})
}

func (m *machine) propose(now algorithm.Time, term lsn.Term) {
	m.role, m.term, m.support = elector.Candidate, term, append(m.support[:0], m.config.Self())
	m.disarm()
	m.result = now.Add(m.timing.ElectionResult)
	m.say(elector.AllMembers, ElectionProposal)
	m.eff.Why = "proposes"
}

// unavailable is the loss of the link to a node.
func (m *machine) unavailable(now algorithm.Time, peer algorithm.NodeID) {
	switch m.role {
	case elector.Follower:
		if m.followed() == peer {
			m.leaderless(now, "the leader is unavailable")
		}
		delete(m.answers, peer)
	case elector.Candidate, elector.Leader:
		m.support = slices.DeleteFunc(m.support, func(id algorithm.NodeID) bool { return id == peer })
		if m.role == elector.Leader && len(m.support) < m.config.Elector.QuorumSize() {
			m.give(now, "quorum lost")
		}
	}
}

// preempted ends leadership by a higher term.
func (m *machine) preempted(now algorithm.Time, term lsn.Term) {
	m.term = term
	m.give(now, "a higher term")
}

func (m *machine) give(now algorithm.Time, why string) {
	m.role, m.support = elector.Follower, m.support[:0]
	m.leaderless(now, why)
	m.say(elector.AllMembers, LeadershipCession)
}

func (m *machine) leaderless(now algorithm.Time, why string) {
	m.leader, m.tentative = "", ""
	m.waitAtRandom(now)
	m.eff.Why = why
}

// follow watches whom it follows or voted for.
func (m *machine) follow(now algorithm.Time) {
	m.disarm()
	m.heard, m.check = now, now.Add(m.timing.HeartbeatBroadcast/2)
}

func (m *machine) waitAtRandom(now algorithm.Time) {
	m.disarm()
	steps := uint64(m.timing.MaxRandomWait/time.Millisecond) + 1
	wait, _ := bits.Mul64(m.entropy, steps)
	m.wait = now.Add(time.Duration(wait) * time.Millisecond)
}

// tick does what is due.
func (m *machine) tick(now algorithm.Time) {
	due := func(at *algorithm.Time) bool {
		if *at == 0 || *at > now {
			return false
		}
		*at = 0
		return true
	}
	if due(&m.check) {
		m.check = now.Add(m.timing.HeartbeatBroadcast / 2)
		if now.Sub(m.heard) >= m.timing.Inactivity() {
			m.leaderless(now, "no heartbeat")
		}
	}
	if due(&m.beat) {
		m.say(elector.AllMembers, LeaderHeartbeat)
		m.beat = now.Add(m.timing.HeartbeatBroadcast)
	}
	if due(&m.result) {
		m.scouting = 0
		if m.elected(now); m.role == elector.Candidate { // a lone voter is elected by now
			m.role, m.support = elector.Follower, m.support[:0]
			m.eff.Why = "no quorum of votes"
		}
		if m.role == elector.Follower {
			m.waitAtRandom(now)
		}
	}
	if due(&m.wait) {
		m.stand(now)
	}
}

func (m *machine) disarm() {
	m.wait, m.result, m.check, m.beat, m.scouting = 0, 0, 0, 0, 0
}

func (m *machine) next() algorithm.Time {
	wake := elector.Never
	for _, at := range []algorithm.Time{m.wait, m.result, m.check, m.beat} {
		if at != 0 {
			wake = min(wake, at)
		}
	}
	return wake
}

// followed is the leader, or whom it voted for; "" for nobody.
func (m *machine) followed() algorithm.NodeID { return cmp.Or(m.leader, m.tentative) }

func (m *machine) say(to algorithm.NodeID, kind Kind) {
	m.sayIn(to, Message{Kind: kind, Term: m.term})
}

func (m *machine) sayIn(to algorithm.NodeID, msg Message) {
	m.eff.Messages = append(m.eff.Messages, algorithm.Envelope{To: to, Message: msg})
}
