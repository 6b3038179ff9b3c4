// Package bully is the bully algorithm of Garcia-Molina, Elections in a Distributed Computing
// System (1982), three times: as books tell it, as the paper has it, and as one implementation
// has it. The highest identifier that is alive leads: of Config.Order the first is the highest.
//
// All three find failures by heartbeats, which their sources leave open: every
// Timing.HeartbeatBroadcast; who is silent for Timing.Inactivity has failed. T_a, the longest
// wait for an answer, is Timing.ElectionResult; T_c, the wait for a coordinator, is 2 T_a: who
// has answered may wait for T_a itself. The sources take for granted that messages arrive. So
// that there are connections, a member that starts or recovers waits for T_a before its first
// election. Nothing is durable.
//
// Bully (plain.go). Who suspects the coordinator, or recovers, sends ELECTION to all higher
// members. Without an ANSWER for T_a it sends COORDINATOR to all lower ones, and leads. With
// one it waits for COORDINATOR, and begins again after T_c. ELECTION from a lower member is
// answered, and starts an election unless one runs. COORDINATOR from a higher member is
// followed; from a lower one it starts an election. Its choices: a heartbeat counts as
// COORDINATOR, except for one of a member between the receiver and its coordinator: otherwise two
// coordinators would stay after a partition. An election runs for T_a at least, so that
// lower members make a member start one in T_a at most: the highest sends COORDINATOR at once,
// and if that ended the elections of the others, messages under way would start them again, 2^n
// in all. A coordinator leads on during its elections.
//
// Strict (strict.go) is the paper's own, with its reorganization. Status is Election,
// Reorganization or Normal. Who runs procedure Election calls AreYouUp at all higher members;
// if one is up it leaves the rest to that. Otherwise it stops, and calls Halt at all lower
// ones, which stop as well: they are in Election, halted by it. To those that were up it calls
// NewCoordinator (now they are in Reorganization), then Ready (now they are Normal). If one of
// these does not answer, it starts again. The coordinator calls AreYouNormal at all others as
// its heartbeat; if one is not, it runs Election. Who does not hear from its coordinator, or
// not what comes of a Halt, for a long time, runs Election. Its choices: calls of one phase go
// out together, where the paper makes one after another, and end after T_a; "a long time" is
// Timing.Inactivity when Normal, otherwise T_c; AreYouUp to the coordinator, which the paper
// asks before Election, is that of Election; Halt from a lower member is ignored; who follows
// another coordinator is not normal for the one that asks, so that the highest reorganizes
// after a partition. A leader is who is Normal and coordinator.
//
// UUID (uuid.go) is github.com/gsharma/leader-election. All members send heartbeats to all;
// who is silent is taken off the list of members until it is heard again. Whenever the
// detector takes one off, whoever it is, the member begins a round: its epoch rises by one. If
// its list has a higher member it sends ELECTION to all of these and does nothing more: there
// is no answer, and no timer. Otherwise it leads, and sends COORDINATOR to all others, up to 3
// times each, T_a apart, until it is acknowledged. Whoever gets COORDINATOR follows, and
// raises its epoch to that of the message; no quorum is asked. Where code and page of the
// source differ, and otherwise: ELECTION from a lower member begins a round at a member
// without higher ones, as the page says; any other passes it on to those higher than itself,
// as the code does, but once in an epoch: otherwise n members would send 2^n. A round begins
// T_a after the start.
//
// Guaranteed, while messages take less than T_a/2 and detection makes no mistakes: the highest
// member that is alive leads, and of two in the paper's Normal both have the same coordinator.
// Not guaranteed: a stable leader. A higher one that recovers takes over from a healthy one,
// and with Strict each recovery stops all. Nor is one leader at a time: every part of a
// partition has one, since no quorum is asked. Where only some links are cut, members that
// cannot hear each other both lead, and with Strict reorganize again and again. With UUID two
// leaders stay after a partition until the next failure, and nobody leads while a higher
// member is listed and dead.
package bully

import (
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
)

// The three variants.
var (
	Bully = algorithm.Algorithm{
		Name:   "bully",
		Title:  "Bully",
		Source: "Garcia-Molina, Elections in a Distributed Computing System, 1982, as in textbooks",
		New:    maker(newPlain),
		Tuned:  tuned,
	}
	Strict = algorithm.Algorithm{
		Name:   "bully-strict",
		Title:  "Bully, reorganizing",
		Source: "Garcia-Molina, Elections in a Distributed Computing System, 1982",
		New:    maker(newStrict),
		Tuned:  tuned,
	}
	UUID = algorithm.Algorithm{
		Name:   "bully-uuid",
		Title:  "Bully, epochs",
		Source: "github.com/gsharma/leader-election",
		New:    maker(newUUID),
	}
)

// tuned has the paper's T: the longest time of a message there and of the answer back, and 1 ms to
// answer.
func tuned(t elector.Timing, l algorithm.Link) elector.Timing {
	t.ElectionResult = 2*l.Longest() + time.Millisecond
	return t
}
