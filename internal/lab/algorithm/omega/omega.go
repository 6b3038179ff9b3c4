// Package omega has the election algorithms of N. Schiper and S. Toueg: A Robust and Lightweight
// Stable Leader Election Service for Dynamic Systems, DSN 2008. Each process chooses among those
// that its failure detectors trust; so there is neither a term nor a quorum nor a disk.
//
// A process sends ALIVE to each other one every eta, and the receiver watches it with NFD-E. If
// Config.QoS is set, each receiver estimates its link and says which eta it wants, and T_D^u is
// QoS.Detect: a crash is detected within that and the mean delay. Otherwise eta is
// HeartbeatBroadcast, and T_D^u is Inactivity. An ALIVE has its sender's start, the epoch: a
// later one suspects the former life, an earlier one is dropped.
//
// acc is a process's accusation time, at first when it joined: a newcomer is never preferred. Of
// remote ones the greatest that was heard counts, since links are not FIFO. Active are this
// process and those that are trusted.
//
//   - Omega_id: the leader is the smallest identifier among the active. All send.
//   - Omega_lc: the local leader of a process is the least (acc, identifier) among the active. The
//     leader is the least of the local leaders of the active, so it may be one that only they
//     hear. ALIVE carries the local leader and its acc, at once if it changes. All send.
//   - Omega_l: the leader is the least (acc, identifier) among the active. Who leads by its own
//     view sends, from the time start on; others do not. Who ceases says so, and start moves on.
//
// In Omega_lc and Omega_l who suspects a process sends it ACCUSE, once; it may get lost. The
// accused sets acc to max(clock, acc) + 1. In Omega_l, ACCUSE has the start that the accuser knew,
// and counts only if it is the present one: silence by choice is not punished.
//
// Choices: a connection stands for the multicast hello, so the first ALIVE on one goes at once,
// and so does the answer to a newcomer. In Omega_l who does not send says which eta it wants as
// soon as that is shorter than the sender's, or a quarter longer. In [the program], Omega_l does
// not send ACCUSE; in the paper it does. The program probes links before it trusts them; here eta
// is short until the link is known.
//
// They guarantee a leader in the end, if the links from one process are in time; Omega_l, if none
// is dead. Omega_lc and Omega_l are stable: who leads stays, unless it is suspected. In a partition
// each side has a leader; at healing the earlier acc wins. One dead link from the leader costs a
// change; if it is dead in both directions, Omega_l disagrees until it is not. A host clock that
// jumps ahead costs its process the rank; one that jumps back has its next life ignored.
//
// [the program]: https://github.com/nschiper/LeaderElection
package omega

import (
	"fmt"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/elector/detector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/member"
)

// Omega_id, Omega_lc and Omega_l.
var (
	ID = define("omega-id", "Omega_id (smallest alive)", omegaID)
	LC = define("omega-lc", "Omega_lc (Schiper-Toueg, robust)", omegaLC)
	L  = define("omega-l", "Omega_l (Schiper-Toueg, scalable)", omegaL)
)

// asked is what the paper's experiments ask for, as we recall them: detection within a second, and
// a mistake every 100 days.
var asked = detector.QoS{
	Detect: time.Second, Mistakes: detector.Recurrence(100 * 24 * time.Hour), Accuracy: 0.99999988,
}

func tuned(elector.Timing, algorithm.Link) elector.Timing { return elector.ForQoS(asked) }

type kind uint8

const (
	omegaID kind = iota
	omegaLC
	omegaL
)

func define(name, title string, k kind) algorithm.Algorithm {
	return algorithm.Algorithm{
		Name: name, Title: title,
		Source:   "Schiper, Toueg: A Robust and Lightweight Stable Leader Election Service, DSN 2008",
		QoS:      asked,
		Tuned:    tuned,
		Deviates: "a connection stands for the hello, and links are not probed before they are trusted",
		New: member.Maker(func(m *member.Member) member.Rules {
			r := &rules{Member: m, kind: k, processes: make([]process, len(m.Cfg.Order))}
			r.limit()
			r.join()
			return r
		}),
	}
}

// rules are those of one process. All members are candidates; the smallest identifier is that of
// rank 0.
type rules struct {
	*member.Member
	kind
	processes []process // by rank, this one too

	ask    detector.QoS // its zero: fixed timers
	limits detector.Limits
	detect time.Duration // T_D^u
	eta    time.Duration // until the receiver has said what it wants

	epoch algorithm.Time // when this process started, on the clock that all share
	sends bool
}

// process is what is known of one process, and of the links to it and from it.
type process struct {
	active     bool
	acc, start algorithm.Time
	local      int // the local leader that it advertises

	number          uint64         // of the newest heartbeat to it
	scheduled, next algorithm.Time // when that heartbeat and the next one are due
	eta             time.Duration

	epoch    algorithm.Time // of its newest life
	newest   uint64         // number of its heartbeats
	deadline algorithm.Time // the freshness point, while it is active
	nfde     *detector.NFDE
	monitor  detector.Monitor
	tuning   detector.Tuning
}

func (r *rules) Input(in algorithm.Input) {
	switch in := in.(type) {
	case elector.LinkUp:
		if peer := r.Rank(in.Peer); peer >= 0 {
			r.hasten(peer)
		}
	case elector.Tick:
		r.judge()
	case elector.Stop:
		if r.sends {
			r.turn(false)
		}
	}
}

// Every rule that says why may change the leader.
func (r *rules) Tick() algorithm.Time {
	if r.Why != "" {
		r.choose()
	}
	return r.sendDue()
}

// Alive is a heartbeat on one link. Times are readings of the clock that all share, except for
// Scheduled.
type Alive struct {
	Epoch      algorithm.Time // when the sender started
	Number     uint64         // of the heartbeat; 0: the sender is not active (any more)
	Scheduled  time.Duration  // when it was due, on the sender's own clock
	Period     time.Duration  // until the next one
	Wanted     time.Duration  // the period that the sender wants of the receiver; 0: any
	Acc, Start algorithm.Time // of the sender
	Local      algorithm.NodeID
	LocalAcc   algorithm.Time // of Local
}

// Name returns "ALIVE".
func (Alive) Name() string { return "ALIVE" }

// String has what the sender says of itself, and of its local leader.
func (a Alive) String() string {
	text := fmt.Sprintf("ALIVE acc=%s start=%s", a.Acc, a.Start)
	if a.Number == 0 {
		text += " silent"
	}
	if a.Local != "" {
		text += fmt.Sprintf(" local=%s acc=%s", a.Local, a.LocalAcc)
	}
	if a.Wanted != 0 {
		text += fmt.Sprintf(" period=%s wanted=%s", a.Period, a.Wanted)
	}
	return text
}

// Accuse says that the sender suspects the receiver.
type Accuse struct {
	Start algorithm.Time // of the receiver, as far as the sender knew; only in Omega_l
}

// Name returns "ACCUSE".
func (Accuse) Name() string { return "ACCUSE" }
