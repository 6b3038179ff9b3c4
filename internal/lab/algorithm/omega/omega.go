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
	"slices"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/elector/detector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
)

// Omega_id, Omega_lc and Omega_l.
var (
	ID = define("omega-id", "Omega_id (smallest alive)", omegaID)
	LC = define("omega-lc", "Omega_lc (Schiper-Toueg, robust)", omegaLC)
	L  = define("omega-l", "Omega_l (Schiper-Toueg, scalable)", omegaL)
)

// asked is what the paper's experiments ask for: detection within a second, and a mistake every
// 100 days.
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
		Source: "Schiper, Toueg: A Robust and Lightweight Stable Leader Election Service, DSN 2008",
		New:    func(cfg algorithm.Config) algorithm.Machine { return newMachine(k, cfg) },
		QoS:    asked,
		Tuned:  tuned,
	}
}

// machine is one process. Processes are known by their index in order; none is -1.
type machine struct {
	kind
	links
	order     []algorithm.NodeID // all voters are candidates; the smallest identifier first
	self      int
	processes []process // this one too

	running bool
	skew    algorithm.Time // the clock that all share minus the node's own
	epoch   algorithm.Time // when this process started
	sends   bool
	leader  int

	out []algorithm.Envelope
}

// process is what is known of one process.
type process struct {
	active     bool
	acc, start algorithm.Time
	local      int // the local leader that it advertises; -1: none
	link
}

func newMachine(k kind, cfg algorithm.Config) *machine {
	return &machine{
		kind: k, links: newLinks(&cfg.Elector), order: cfg.Order, self: cfg.Rank(cfg.Self()),
		processes: make([]process, len(cfg.Order)),
	}
}

// View names the leader.
func (m *machine) View() algorithm.View {
	switch {
	case !m.running:
		return algorithm.View{}
	case m.leader == m.self:
		return algorithm.View{Role: elector.Leader, Leader: m.order[m.leader]}
	}
	return algorithm.View{Role: elector.Follower, Leader: m.order[m.leader]}
}

// Step acts on an input.
func (m *machine) Step(now algorithm.Time, _ uint64, in algorithm.Input) algorithm.Effects {
	m.out = m.out[:0]
	rule := ""
	switch in := in.(type) {
	case algorithm.Start:
		m.join(now, in.Clock)
		rule = "joined"
	case algorithm.Received:
		rule = m.receive(now, m.rank(in.From), in.Message)
	case elector.LinkUp:
		if peer := m.rank(in.Peer); peer >= 0 {
			m.hasten(now, peer)
		}
	case elector.Tick:
		rule = m.judge(now)
	case elector.Stop:
		if m.running && m.sends {
			m.turn(now, false)
		}
		m.running = false
	}
	if !m.running {
		return algorithm.Effects{Messages: m.out, Why: "left", Wake: elector.Never}
	}
	if rule != "" {
		m.choose(now)
	}
	wake := m.sendDue(now)
	return algorithm.Effects{Messages: m.out, Why: rule, Wake: wake}
}

func (m *machine) rank(id algorithm.NodeID) int { return slices.Index(m.order, id) }

func (m *machine) send(to int, message algorithm.Message) {
	m.out = append(m.out, algorithm.Envelope{To: m.order[to], Message: message})
}
