// Package multipaxos is the leader election that the study of Omni-Paxos (Ng, Haridi and Carbone,
// EuroSys 2023) calls Multi-Paxos. Read was its artifact, haraldng/omnipaxos-artifacts 4cda041:
// mp_le.rs, which elects in the constrained and the chained scenario, and of multi_paxos/, the
// authors' port of FrankenPaxos, acceptor.rs and leader.rs for phase 1. In the quorum loss the
// study plays the port with its own election (participant.rs), which is not here: whoever hears no
// ping leads, in the next round. There both elections end in a deadlock.
//
// Every server goes through rounds of its own. At the beginning it asks all others for a heartbeat
// (HBRequest), who answer at once, always, with their ballot and with the leader's as they know it
// (HBReply). Only answers of this round count. The rules:
//
//  1. A leader's ballot in an answer that is above the one known takes its place, at once.
//  2. At the end of a round in which a quorum answered, itself included, the highest of their
//     ballots and its own is the leader's, if it is not below the one known.
//  3. If it is below, the leader does not answer: the server forgets the leader, and increments its
//     ballot past the leader's. So it wins the next round, unless another's is higher still.
//  4. Without a quorum of answers the end of a round changes nothing.
//  5. Who takes its own ballot for the leader's begins phase 1: it sends Phase1a to all. An
//     acceptor whose promise is not higher promises, durably, and answers Phase1b. With these of a
//     quorum, itself included, the server leads. Until then it sends Phase1a again.
//  6. An acceptor with a higher promise answers Nack with that. Who takes itself for the leader
//     then begins phase 1 anew in a ballot past it, whether it had a quorum or not.
//
// View names the server of the higher of the leader's ballot and the promise; View.Term numbers the
// ballots in their order.
//
// Where this departs from the artifact, or it is silent: phase 1 has mp_le.rs's ballots, where the
// study has another log, or numbers rounds anew. A leader sends Phase2a once a round in place of
// the log's, so that it learns of higher promises as one with clients does, and Phase1a is sent
// again as often, there after 5 s. The server's own promise answers it, too: one that restarts
// begins with its lowest ballot, and goes past its promise by rule 6. A round takes
// Timing.Inactivity.
//
// Guaranteed: no two servers lead in the same ballot, and who leads had the promises of a quorum.
// Not guaranteed: one leader at a time, since an old one believes until it hears of a higher
// ballot; nor a stable one: the two ends of a chain hear of each other's ballots through the
// middle, by rule 1, and not from each other, so by rule 3 they depose each other for ever. In the
// quorum loss only one hears a quorum, and the old leader, too: nobody replaces it. It costs
// 2n(n-1) messages a round.
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
	Deviates:         "phase 1 has the election's ballots; the log is one message a round",
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
	leader  Ballot     // zero if there is none

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
