// Package multipaxos is the leader election that the study of Omni-Paxos (Ng, Haridi and Carbone,
// EuroSys 2023) calls Multi-Paxos. Read was its artifact, haraldng/omnipaxos-artifacts 4cda041:
// mp_le.rs, which elects in the constrained and the chained scenario, and of multi_paxos/, the
// authors' port of FrankenPaxos, acceptor.rs and leader.rs for phase 1. In the quorum loss the
// study plays the port with its own election (participant.rs), which is not here: a server that
// hears no ping leads, in the next round. There both elections end in a deadlock.
//
// Every server goes through rounds of its own. When one begins, it asks all others for a heartbeat
// (HBRequest). They answer at once and always (HBReply): with their own ballot, and with the
// leader's as they know it. Only answers of this round count. The rules:
//
//  1. An answer with a leader's ballot above the known one replaces that at once.
//  2. At the end of a round in which a quorum answered, itself included, the server looks for the
//     highest of their ballots and its own. If that is not below the known leader's, it is the
//     leader's.
//  3. If it is below, the leader did not answer. The server forgets the leader, and raises its own
//     ballot past the leader's. It wins the next round, unless another ballot is higher still.
//  4. Without a quorum of answers the end of a round changes nothing.
//  5. A server whose own ballot is the leader's begins phase 1: it sends Phase1a to all, and
//     repeats that until it leads. An acceptor whose promise is not higher promises, durably, and
//     answers Phase1b. With these of a quorum, itself included, the server leads.
//  6. An acceptor with a higher promise answers Nack with that. A server that takes itself for the
//     leader then begins phase 1 anew in a ballot past it, also if it led.
//
// View names the server of the higher of the leader's ballot and the promise. View.Term numbers the
// ballots in their order: the number times the number of voters, plus the pid.
//
// Deviations, and what the artifact leaves open:
//   - Phase 1 has the ballots of mp_le.rs. The study uses another log with that, or numbers rounds
//     anew.
//   - A leader sends Phase2a once a round in place of the log's messages. So it learns of higher
//     promises as one with clients does.
//   - Phase1a is sent again after a round, and in the artifact after 5 s.
//   - A server's own promise refuses it, too. One that restarts begins with its lowest ballot, and
//     goes past its promise by rule 6.
//   - A pid is higher, the more a server is preferred.
//
// A round takes Timing.Inactivity, and costs 2n(n-1) messages.
//
// Guaranteed: no two servers lead in the same ballot, and a leader had the promises of a quorum.
// Not guaranteed:
//   - One leader at a time. An old one leads on until it hears of a higher ballot.
//   - A stable leader. The ends of a chain hear of each other's ballots through the middle, by rule
//     1, but not from each other. So by rule 3 they depose each other for ever.
//   - A new leader in the quorum loss. Only one server hears a quorum, and it hears the old leader,
//     too. Nobody replaces that.
package multipaxos

import (
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/member"
)

// MultiPaxos is the election with phase 1.
var MultiPaxos = algorithm.Algorithm{
	Name:             "multipaxos",
	Title:            "Multi-Paxos",
	Source:           "artifact of Ng, Haridi, Carbone: Omni-Paxos, EuroSys 2023",
	New:              member.Maker(begin),
	OneLeaderPerTerm: true,
	Deviates: "phase 1 has the election's ballots; the log is one message a round, as often " +
		"as Phase1a is sent again, not after 5 s; a server's own promise refuses it, too",
}

// Ballot is of one server's leadership.
type Ballot = member.Ballot

// The messages.
type (
	// HBRequest asks for a heartbeat.
	HBRequest struct{ Round uint64 }
	// HBReply is a heartbeat.
	HBReply struct {
		Round  uint64 // as in the request
		Ballot Ballot // the sender's own
		Leader Ballot // the leader's, as the sender knows it
	}
	// Phase is Phase1a, which asks for a promise, Phase1b, which says that the sender has promised,
	// or Phase2a, the log's message of a leader.
	Phase struct {
		Kind   string `codec:"-"`
		Ballot Ballot
	}
	// Nack answers Phase1a and Phase2a below the promise.
	Nack struct{ Promise Ballot }
)

// Disk is what an acceptor keeps durable.
type Disk struct{ Promise Ballot }

// server is one server. The names of its fields are the source's.
type server struct {
	*member.Member
	timer   member.Timer
	round   uint64
	replies member.Set // from whom, in this round; itself
	top     Ballot     // the highest of these
	current Ballot     // its own
	leader  Ballot     // zero if it knows no leader

	promise  Ballot     // the acceptor's
	phase1bs member.Set // who promised current, if that is the leader's
}

func begin(m *member.Member) member.Rules {
	s := &server{Member: m, current: Ballot{Pid: m.Pid()}}
	disk, _ := m.Disk.(Disk)
	s.promise = disk.Promise
	s.newRound()
	return s
}

func (s *server) newRound() {
	s.round++
	s.timer = s.After(s.Timing.Inactivity())
	s.replies, s.top = member.Of(s.Self), s.current
	s.Broadcast(HBRequest{s.round})
}

func (s *server) Receive(from int, msg algorithm.Message) {
	switch msg := msg.(type) {
	case HBRequest:
		s.Send(from, HBReply{msg.Round, s.current, s.leader})
	case HBReply:
		s.replied(from, msg)
	case Phase:
		s.phase(from, msg)
	case Nack:
		if msg.Promise.Above(s.current) && s.leader == s.current {
			s.Why = "Nack"
			s.promise.Raise(msg.Promise)
			s.prepare()
		}
	}
}

func (s *server) replied(from int, reply HBReply) {
	if reply.Round != s.round {
		return
	}
	s.replies.Put(from, true)
	s.top.Raise(reply.Ballot)
	if reply.Leader.Above(s.leader) {
		s.elect(reply.Leader, "a leader by hearsay")
	}
}

// checkLeader is rules 2 to 4.
func (s *server) checkLeader() {
	switch {
	case !s.Quorum(s.replies):
	case s.leader.Above(s.top):
		s.current.N, s.leader = s.leader.N+1, Ballot{}
		s.Why = "the leader does not answer"
	case s.leader != s.top:
		s.elect(s.top, "the highest ballot")
	}
}

// elect takes a ballot for the leader's.
func (s *server) elect(b Ballot, why string) {
	s.leader, s.Why = b, why
	if b == s.current {
		s.prepare()
	}
}

// prepare begins phase 1, in a ballot past the promise.
func (s *server) prepare() {
	if !s.current.Above(s.promise) {
		s.current.N = s.promise.N + 1
	}
	s.leader, s.promise, s.phase1bs = s.current, s.current, member.Set{}
	s.Hold(member.All, Phase{"Phase1a", s.current})
}

// phase promises a ballot, or refuses it, or counts a promise.
func (s *server) phase(from int, msg Phase) {
	switch {
	case msg.Kind == "Phase1b":
		if msg.Ballot == s.current {
			s.promised(from)
		}
		return
	case s.promise.Above(msg.Ballot):
		s.Send(from, Nack{s.promise})
		return
	case msg.Kind == "Phase1a":
		s.Hold(from, Phase{"Phase1b", msg.Ballot})
	}
	s.promise, s.Why = msg.Ballot, msg.Kind
}

// promised counts a Phase1b of the present ballot.
func (s *server) promised(by int) {
	s.phase1bs.Put(by, true)
	s.Why = "Phase1b of a quorum"
}

// Input counts its own promise when it is durable.
func (s *server) Input(in algorithm.Input) {
	if _, ok := in.(elector.Persisted); ok && s.Saved == (Disk{s.current}) {
		s.promised(s.Self)
	}
}

func (s *server) Tick() algorithm.Time {
	if s.Due(&s.timer) {
		switch {
		case s.leader != s.current:
		case s.Quorum(s.phase1bs):
			s.Broadcast(Phase{"Phase2a", s.current})
		default:
			s.Hold(member.All, Phase{"Phase1a", s.current})
		}
		s.checkLeader()
		s.newRound()
	}
	s.Save(Disk{s.promise})
	return s.timer.When()
}

// View has the higher of the leader's ballot and the promise.
func (s *server) View() algorithm.View {
	b := s.leader
	b.Raise(s.promise)
	leader, term := s.Owner(b)
	v := algorithm.View{Role: elector.Follower, Leader: s.Name(leader), Term: term}
	switch {
	case leader != s.Self:
	case s.leader != s.current || b != s.current: // of the life before
		v.Leader = ""
	case s.Quorum(s.phase1bs):
		v.Role = elector.Leader
	default:
		v.Role, v.Leader = elector.Candidate, ""
	}
	return v
}
