// Package ble is the ballot leader election of Omni-Paxos, in the newer form with the flag
// happy: Ng, Haridi and Carbone, Omni-Paxos: Breaking the Barriers of Partial Connectivity,
// EuroSys 2023, and its authors' implementation.
//
// Every server goes through heartbeat rounds of its own. At the beginning of a round it asks
// all peers (HBRequest), who answer at once, always, with their ballot, the leader's ballot as
// they know it, and whether they are happy: whether they are, see or hear of a leader that a
// quorum can follow. At the end it judges by the replies of this round alone:
//
//  1. The highest ballot among the replies is the leader's, if it is above the one known.
//  2. The leader is happy if a quorum, itself included, is not past its ballot, or else if
//     someone is happy with a higher one. Another server is happy if the leader itself says
//     that it is happy.
//  3. Takeover: a server that is unhappy, hears from a quorum, and sees nobody happy,
//     increments its ballot past the leader's, and leads.
//  4. A promise in the replicated log that is above the leader's ballot replaces it.
//  5. A server leads if the leader's ballot is its own.
//
// The replicated log is here only as far as the election needs it: who leads in a ballot
// promises it, durably, and sends Prepare; who gets a Prepare of a higher ballot promises that
// and follows. A server answers the question who leads with its promise, as the implementation
// does, if that is the higher ballot. The log's answers, repeats and contents are left out:
// nothing here waits for them, and a leader needs no up-to-date log. So a server leads here
// when it begins to prepare, before a quorum has promised.
//
// As in the source, replies leave at once, also while a takeover's promise is being written. A
// server that crashes then does not know its ballot any more, and may take the same one again:
// it is the log that must not go on from there.
//
// The time-out of a round is Timing.Inactivity. A pid is higher, the more a server is
// preferred. View.Term numbers the ballots in their order: n times the number of voters, plus
// the pid. The priority of ballots is left out: pids order as freely here.
//
// It guarantees that no two servers have the same ballot, and a leader within four time-outs
// once a server hears from a quorum. A leader is stable while the servers that it needs are
// happy with it: one that only lost its link to the leader sees happy neighbours and stays
// quiet. It does not guarantee one leader at a time: a replaced one believes until it hears of
// a higher ballot at the end of a round or in a Prepare, and one without a quorum goes on
// believing for as long as it hears of none. A crash is noticed at the end of the first full
// round, so a pause shorter than a round may pass unseen. It costs 2n(n-1) messages a round,
// for ever.
package ble

import (
	"fmt"
	"slices"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/lsn"
)

// BLE is ballot leader election.
var BLE = algorithm.Algorithm{
	Name:             "ble",
	Title:            "Omni-Paxos BLE",
	Source:           "Ng, Haridi, Carbone: Omni-Paxos, EuroSys 2023",
	New:              newMachine,
	OneLeaderPerTerm: true,
}

// Ballot is a leadership's unique number: compared by N, then by Pid. The zero Ballot is none.
type Ballot struct {
	N   uint64
	Pid uint64 // from 1; 0 for no ballot
}

func (b Ballot) above(c Ballot) bool { return b.N > c.N || b.N == c.N && b.Pid > c.Pid }

// String returns n.pid.
func (b Ballot) String() string { return fmt.Sprintf("%d.%d", b.N, b.Pid) }

// HBRequest asks for a heartbeat.
type HBRequest struct{ Round uint64 }

// HBReply is a heartbeat: the sender's state when it was asked.
type HBReply struct {
	Round  uint64 // as in the request
	Ballot Ballot // the sender's own
	Leader Ballot // the leader's, as the sender knows it
	Happy  bool
}

// Prepare is how a new leader begins in the replicated log.
type Prepare struct{ Ballot Ballot }

// Name implements algorithm.Message.
func (HBRequest) Name() string { return "HBRequest" }

// Name implements algorithm.Message.
func (HBReply) Name() string { return "HBReply" }

// Name implements algorithm.Message.
func (Prepare) Name() string { return "Prepare" }

// String implements algorithm.Message.
func (m HBRequest) String() string { return fmt.Sprintf("HBRequest round=%d", m.Round) }

// String implements algorithm.Message.
func (m HBReply) String() string {
	mood := "unhappy"
	if m.Happy {
		mood = "happy"
	}
	return fmt.Sprintf("HBReply round=%d ballot=%s leader=%s %s", m.Round, m.Ballot, m.Leader, mood)
}

// String implements algorithm.Message.
func (m Prepare) String() string { return fmt.Sprintf("Prepare %s", m.Ballot) }

// Disk is what the replicated log keeps durable of the election.
type Disk struct{ Promise Ballot }

// String is for example "promise=2.3".
func (d Disk) String() string { return "promise=" + d.Promise.String() }

type reply struct {
	from algorithm.NodeID
	HBReply
}

// machine is one server. The names of its fields are the source's.
type machine struct {
	members []algorithm.NodeID // by pid, from 1
	timeout algorithm.Time     // end of this round
	delta   int64              // of a round, in nanoseconds
	quorum  int

	round   uint64
	replies []reply // of this round, one a peer
	current Ballot  // this server's own
	leader  Ballot  // the highest that it judges by
	happy   bool
	leads   bool   // by the end of the last round
	promise Ballot // the log's
	view    algorithm.View
	effects algorithm.Effects
}

func newMachine(cfg algorithm.Config) algorithm.Machine {
	n := len(cfg.Order)
	m := &machine{delta: int64(cfg.Elector.Timing.Inactivity()), quorum: cfg.Elector.QuorumSize(),
		members: make([]algorithm.NodeID, n+1)}
	for i, id := range cfg.Order {
		m.members[n-i] = id
	}
	m.current.Pid = uint64(n - cfg.Rank(cfg.Self()))
	return m
}

// View implements algorithm.Machine.
func (m *machine) View() algorithm.View { return m.view }

// Step implements algorithm.Machine.
func (m *machine) Step(now algorithm.Time, _ uint64, in algorithm.Input) algorithm.Effects {
	m.effects = algorithm.Effects{Messages: m.effects.Messages[:0], Durable: m.effects.Durable[:0]}
	if start, ok := in.(algorithm.Start); ok {
		m.start(now, start.Disk)
	}
	if m.view.Role != elector.Dormant {
		switch in := in.(type) {
		case elector.Tick:
			if now >= m.timeout {
				m.hbTimeout(now)
			}
		case algorithm.Received:
			m.receive(in.From, in.Message)
		case elector.Stop:
			m.view, m.effects.Why = algorithm.View{}, "stopped"
		}
	}
	m.effects.Wake = m.timeout
	if m.view.Role == elector.Dormant {
		m.effects.Wake = elector.Never
	}
	return m.effects
}

// start begins with ballot 1; a server that has promised before begins below all ballots, and
// with its promise as the leader, so that it cannot claim a ballot of its life before.
func (m *machine) start(now algorithm.Time, disk algorithm.Disk) {
	m.view.Role, m.effects.Why = elector.Follower, "start"
	m.current.N, m.happy = 1, true
	m.leader = m.current
	if disk, ok := disk.(Disk); ok {
		m.current.N, m.leader, m.promise = 0, disk.Promise, disk.Promise
		m.effects.Why = "recovery"
		m.see()
	}
	m.newRound(now)
}

func (m *machine) receive(from algorithm.NodeID, message algorithm.Message) {
	switch r := message.(type) {
	case HBRequest:
		m.send(from, HBReply{r.Round, m.current, m.leader, m.happy})
	case HBReply:
		// A network that doubles messages must not make a quorum.
		counted := func(r reply) bool { return r.from == from }
		if r.Round == m.round && !slices.ContainsFunc(m.replies, counted) {
			m.replies = append(m.replies, reply{from, r})
		}
	case Prepare:
		if r.Ballot.above(m.promise) {
			m.promise = r.Ballot
			m.effects.Persist, m.effects.Why = Disk{m.promise}, "Prepare"
			m.see()
		}
	}
}

// hbTimeout ends a round: rules 1 to 5 of the package comment.
func (m *machine) hbTimeout(now algorithm.Time) {
	m.effects.Why = "end of round"
	for _, r := range m.replies {
		if r.Ballot.above(m.leader) {
			m.leader = r.Ballot
		}
	}
	m.updateHappiness()
	m.checkTakeover()
	if m.promise.above(m.leader) {
		m.leader, m.happy = m.promise, true
	}
	if m.leader == m.current && m.current.above(m.promise) {
		m.promise = m.current
		m.effects.Persist = Disk{m.promise}
		m.effects.Durable = append(m.effects.Durable,
			algorithm.Envelope{To: elector.AllMembers, Message: Prepare{m.current}})
	}
	m.leads = m.leader == m.current
	m.see()
	m.newRound(now)
}

func (m *machine) updateHappiness() {
	followers, led := 1, false // potential followers of this server; its leader is happy
	aboveHappy := false        // someone is happy with a higher ballot
	for _, r := range m.replies {
		if !r.Leader.above(m.current) {
			followers++
		} else if r.Happy {
			aboveHappy = true
		}
		led = led || r.Ballot == m.leader && r.Happy
	}
	if m.leader == m.current {
		m.happy = followers >= m.quorum || aboveHappy
	} else {
		m.happy = led
	}
}

func (m *machine) checkTakeover() {
	if m.happy || 1+len(m.replies) < m.quorum {
		return
	}
	for _, r := range m.replies {
		if r.Happy {
			return
		}
	}
	m.current.N = m.leader.N + 1
	m.leader, m.happy = m.current, true
	m.effects.Why = "takeover"
}

// newRound asks all peers.
func (m *machine) newRound(now algorithm.Time) {
	m.round++
	m.replies = m.replies[:0]
	m.timeout = now + algorithm.Time(m.delta)
	m.send(elector.AllMembers, HBRequest{m.round})
}

func (m *machine) send(to algorithm.NodeID, message algorithm.Message) {
	e := algorithm.Envelope{To: to, Message: message}
	if m.effects.Persist != nil {
		m.effects.Durable = append(m.effects.Durable, e)
		return
	}
	m.effects.Messages = append(m.effects.Messages, e)
}

// see is the view after the ballots have changed. The log does not lead in a ballot below
// its promise.
func (m *machine) see() {
	b := m.leader
	if m.promise.above(b) {
		b = m.promise
	}
	voters := uint64(len(m.members) - 1)
	m.view = algorithm.View{Role: elector.Follower, Term: lsn.Term(b.N*voters + b.Pid)}
	if b.Pid <= voters { // of other voters, on an older disk or a peer's, it may be any
		m.view.Leader = m.members[b.Pid]
	}
	if m.leads && b == m.current {
		m.view.Role = elector.Leader
	} else if b.Pid == m.current.Pid {
		m.view = algorithm.View{Role: elector.Follower} // a ballot of its life before
	}
}
