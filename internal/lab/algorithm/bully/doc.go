// Package bully is the bully algorithm of Garcia-Molina, Elections in a Distributed Computing
// System (1982), three times: as books tell it, as the paper has it, and as one program has it.
// The highest identifier that is alive leads: of Config.Order the first is the highest.
//
// The first two find failures by heartbeats, which their sources leave open: every
// Timing.HeartbeatBroadcast; who is silent for Timing.Inactivity has failed. T_a, the longest wait
// for an answer, is Timing.ElectionResult; T_c, the wait for a coordinator, is 2 T_a: who has
// answered may wait for T_a itself. The sources take for granted that messages arrive. So that
// there are connections, a member that starts or recovers waits for T_a. Nothing is durable.
//
// Bully (plain.go), by the five rules of gsharma/leader-election's page, which are the books'. Who
// suspects the coordinator, or recovers, sends ELECTION to all higher members. Without an ANSWER
// for T_a it sends COORDINATOR to all others, and leads; so does the highest at once. With one it
// waits for COORDINATOR, and begins again after T_c. ELECTION from a lower member is answered, and
// starts an election unless one runs. COORDINATOR from a higher member is followed. From a lower
// one the page follows it as well: here it starts an election, as the paper has it (a protest).
// Other choices: a heartbeat counts as COORDINATOR, except for one of a member between the receiver
// and its coordinator: otherwise two coordinators would stay after a partition. An election runs
// for T_a at least, so that lower members make a member start one in T_a at most: the highest sends
// COORDINATOR at once, and if that ended the elections of the others, messages under way would
// start them again, 2^n in all. A coordinator leads on during its elections.
//
// Strict (strict.go) is the paper's own, with its reorganization. Status is Election,
// Reorganization or Normal. Who runs procedure Election calls AreYouUp at all higher members; if
// one is up it leaves the rest to that. Otherwise it stops, and calls Halt at all lower ones, which
// stop as well: they are in Election, halted by it. To those that were up it calls NewCoordinator
// (now they are in Reorganization), then Ready (now they are Normal). If one of these does not
// answer, it starts again. The coordinator calls AreYouNormal at all others as its heartbeat; if
// one is not, it runs Election. Who does not hear from its coordinator, or not what comes of a
// Halt, for a long time, runs Election. Its choices: calls of one phase go out together, where the
// paper makes one after another, and end after T_a; "a long time" is Timing.Inactivity when Normal,
// otherwise T_c; AreYouUp to the coordinator, which the paper asks before Election, is that of
// Election; who follows another coordinator is not normal for the one that asks, so that the
// highest reorganizes after a partition. A leader is who is Normal and coordinator.
//
// UUID (uuid.go) is the program github.com/gsharma/leader-election at b1d2590 as it is, read:
// BullyLeaderElection, MemberServiceHandler, MemberGroup, SwimFailureDetector and TCPTransport. A
// round is a call of electLeader: the member's count of rounds, its epoch, rises by one. If the
// list has a larger member, it sends ELECTION to all larger ones and does nothing more: answers
// are ignored, and there is no timer. Otherwise it leads, sends COORDINATOR to all others, and
// asks no quorum. Whoever gets COORDINATOR follows, and raises its epoch to that of the message.
// Who gets ELECTION from a smaller member sends ELECTION on to those larger than itself, and begins
// no round: the largest does nothing. A detector probes a member at random, and if that does not
// answer asks all others to; if they get no answer either, it sends MEMBER_FAILED to all. It marks
// an entry that no rule looks at: nobody is ever taken off the list, and notifyMemberFailed, which
// would begin a round, has no caller. So nobody ever succeeds the largest, and all name it on when
// it is dead. Choices: nobody calls electLeader in the program except its tests; here each member
// does, once, T_a after its start, so that its round is 1. An ELECTION is sent on once in a life:
// the program does so each time, 2^n messages of n members, which change nothing. COORDINATOR and
// FD_PING_REQUEST are sent once: the program tries three times, at once, over a connection that it
// never renews. Probes begin each Timing.Inactivity, in the program 3 s, and each step waits for
// T_a. The identifiers are Config.Order, not random.
//
// Guaranteed by Bully and Strict, while messages take less than T_a/2 and detection makes no
// mistakes: the highest member that is alive leads, and of two in the paper's Normal both have the
// same coordinator. Not guaranteed: a stable leader. A higher one that recovers takes over from a
// healthy one, and with Strict each recovery stops all. Nor is one leader at a time: every part of
// a partition has one, since no quorum is asked. Where only some links are cut, members that cannot
// hear each other both lead, and with Strict reorganize again and again. UUID guarantees nothing:
// who starts after COORDINATOR was sent, or does not get it, never learns who leads.
package bully

import (
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/member"
	"github.com/bmqelect/bmqelect/lsn"
)

// The three variants.
var (
	Bully = algorithm.Algorithm{
		Name:     "bully",
		Title:    "Bully",
		Source:   "Garcia-Molina, Elections in a Distributed Computing System, 1982, as in textbooks",
		New:      member.Maker(beginPlain),
		Tuned:    tuned,
		Deviates: "the coordination of a lower one is not followed, but protested against",
	}
	Strict = algorithm.Algorithm{
		Name:     "bully-strict",
		Title:    "Bully, reorganizing",
		Source:   "Garcia-Molina, Elections in a Distributed Computing System, 1982",
		New:      member.Maker(beginStrict),
		Tuned:    tuned,
		Deviates: "calls of one phase go out together",
	}
	UUID = algorithm.Algorithm{
		Name:     "bully-uuid",
		Title:    "Bully, epochs",
		Source:   "github.com/gsharma/leader-election",
		New:      member.Maker(beginUUID),
		Deviates: "each member calls for a round once; ELECTION is sent on once",
	}
)

// tuned has the paper's T: the longest time of a message there and of the answer back, and 1 ms to
// answer.
func tuned(t elector.Timing, l algorithm.Link) elector.Timing {
	t.ElectionResult = 2*l.Longest() + time.Millisecond
	return t
}

func sendHigher(m *member.Member, msg algorithm.Message) {
	for i := range m.Self {
		m.Send(i, msg)
	}
}

// Messages of Bully and UUID.
type (
	// Election tells a higher member of an election.
	Election struct {
		Epoch lsn.Term // with UUID
	}
	// Answer says that a higher member takes the election over.
	Answer struct{}
	// Coordinator says that the sender leads.
	Coordinator struct {
		Epoch lsn.Term // with UUID
	}
	// OK answers Election, Coordinator and MemberFailed with UUID.
	OK struct{}
	// Heartbeat says that the sender leads.
	Heartbeat struct{}
)

// Messages of UUID's detector.
type (
	// Ping asks whether the member is alive.
	Ping struct{ For algorithm.NodeID } // who wants to know it; "" for the sender
	// PingRequest asks for a Ping to a member.
	PingRequest struct{ Member algorithm.NodeID }
	// Ack says that a member is alive.
	Ack struct{ Member, For algorithm.NodeID }
	// MemberFailed says that a member is not.
	MemberFailed struct{ Member algorithm.NodeID }
)

// Call calls a procedure of Strict at another member.
type Call struct {
	Kind   string `codec:"-"` // the procedure
	Number uint64 // of the caller's phase; Return echoes it
}

// Return says that a procedure was executed.
type Return struct {
	Number uint64
	No     bool // the answer to AreYouNormal
}

// Name is what the source calls the message.
func (Election) Name() string     { return "ELECTION" }
func (Answer) Name() string       { return "ANSWER" }
func (Coordinator) Name() string  { return "COORDINATOR" }
func (Heartbeat) Name() string    { return "HEARTBEAT" }
func (Ping) Name() string         { return "FD_PING" }
func (PingRequest) Name() string  { return "FD_PING_REQUEST" }
func (Ack) Name() string          { return "ACK" }
func (MemberFailed) Name() string { return "MEMBER_FAILED" }
