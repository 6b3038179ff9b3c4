// Package algorithm is the seam between an election algorithm and all that runs it: the
// simulator, the scenario runner and the reports know no algorithm except through it. Each
// algorithm is a folder below this one; package replay lists them.
//
// An algorithm is a pure state machine in the shape of package elector's: what happens
// comes in as an Input with the time and a random number, and what to do comes out as
// Effects. It has no goroutine, no clock and no randomness of its own, and it does not
// range over a map into anything that is seen.
package algorithm

import (
	"slices"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/elector/detector"
	"github.com/bmqelect/bmqelect/lsn"
)

// NodeID names a member.
type NodeID = elector.NodeID

// Time is a reading of one node's own clock; see elector.Time.
type Time = elector.Time

// Algorithm is one way to elect a leader.
type Algorithm struct {
	Name   string // as in --algorithm: lower case, digits and hyphens
	Title  string // as in tables
	Source string // who described it, and where
	New    func(Config) Machine
	// Store makes the machine of the store that the members ask for a lease; nil if the
	// algorithm has none. It runs under the name StoreNode.
	Store func(Config) Machine
	// OneLeaderPerTerm says that the algorithm promises at most one leader in a term, and
	// that a leader's View has its term. The simulator holds it to that.
	OneLeaderPerTerm bool
	// Leased says that the machines are Leased: a leader leads for as long as its lease
	// runs. Without it a node leads for as long as its View says so.
	Leased bool
	// Tuned, if not nil, returns the timers that the source recommends for links, made of those
	// that the laboratory gives to all alike. It changes only what the machines read.
	Tuned func(alike elector.Timing, l Link) elector.Timing
	// QoS, if set, is the quality of service with which the source says that failures are found.
	// In the laboratory its Detect is the inactivity interval.
	QoS detector.QoS
	// Deviates says on one line where the machines depart from the source; "" for nowhere.
	Deviates string
}

// Link is what every link does to a message, as far as timers depend on it.
type Link struct {
	Delay, Jitter time.Duration // a message takes from Delay to Delay + Jitter
	LossPPM       int           // the chance that it is lost, in parts per million
}

// OnAnyLink is for Tuned, of a source whose timers depend on no link: heartbeats of a period,
// and how many may be missing.
func OnAnyLink(period time.Duration, misses int) func(elector.Timing, Link) elector.Timing {
	return func(alike elector.Timing, _ Link) elector.Timing {
		alike.HeartbeatBroadcast, alike.HeartbeatMissCount = period, misses
		return alike
	}
}

// Longest is the most that a message takes which is not lost.
func (l Link) Longest() time.Duration { return l.Delay + l.Jitter }

// StoreNode is the name of the store. No member may have it.
const StoreNode NodeID = "store"

// Config is what a machine knows from the beginning.
type Config struct {
	// Elector has the machine's own name, the voters, the quorum and the timers, from
	// which each algorithm takes its own as its documentation says.
	Elector elector.Config
	// Order has all voters. An algorithm that prefers members by their identifiers, the
	// highest or the smallest as its source says, prefers the first of these most. It makes
	// the leader of a scenario's beginning possible.
	Order []NodeID
}

// Self is the machine's own name.
func (c *Config) Self() NodeID { return c.Elector.Self }

// Rank is a voter's place in Order, the preferred one's 0; -1 if it is no voter.
func (c *Config) Rank(id NodeID) int { return slices.Index(c.Order, id) }

// Machine is one member's part of an algorithm. It is not safe for concurrent use.
type Machine interface {
	// Step acts on an input. now never goes back; entropy is uniform over all its values.
	// The slices of the effects are valid until the next step.
	Step(now Time, entropy uint64, in Input) Effects
	// View is what the node would answer if it were asked who leads.
	View() View
}

// Leased is a Machine whose leader leads only for as long as its lease runs.
type Leased interface {
	Machine
	Lease() elector.Lease
}

// Input is something that happened to a node: Start, Received, or one of elector's inputs
// elector.Tick, LinkUp, LinkDown, Died, Measured, Persisted, Publish, ChangeVoters, Eligible,
// Guard, Transfer, Resign, Pause and Stop. A machine ignores what its algorithm does not know; but
// after Stop it takes part no more, and its View's role is elector.Dormant.
type Input any

// Start begins taking part.
type Start struct {
	// Disk is what the node persisted last; nil on a new disk.
	Disk Disk
	// Clock is a reading of a clock that all nodes share, as far as their hosts' clocks agree.
	// It is of use only to algorithms that compare times of different nodes.
	Clock Time
}

// Disk is what a machine finds on its disk after a restart: a comparable value of a type
// of its own, which only its package looks into.
type Disk any

// Received hands over a message from a peer.
type Received struct {
	From     NodeID
	Identity elector.Identity // of the disk of the process that sent it
	Message  Message
}

// Message is what the machines of one algorithm send each other: a struct with exported
// fields of basic types, slices of them or structs, so that every encoder knows it. It is
// not changed once it was sent. Name and Text say what it is.
type Message any

// Effects is what a step asks for.
type Effects struct {
	// Persist is what to have on disk, in place of all before; nil for nothing new. When it
	// is durable the machine gets elector.Persisted.
	Persist Disk
	// Messages may leave at once.
	Messages []Envelope
	// Durable are messages that may leave once Persist is durable.
	Durable []Envelope
	// Why names the rule by which the View changed, in a few words of the algorithm's
	// source. It means nothing if the View did not.
	Why string
	// Wake is when the machine wants the next elector.Tick at the latest; elector.Never if
	// it has no deadline.
	Wake Time
}

// Envelope is a message on its way to one member, or to all.
type Envelope struct {
	To      NodeID // elector.AllMembers for a broadcast to all except the sender
	Message Message
}

// View is what a node holds to be true.
type View struct {
	Role   elector.Role // Leader if it believes that it leads
	Leader NodeID       // whom it names as the leader; "" for none
	// Term numbers the leadership that it holds or follows, or else its own latest
	// attempt: a term, an epoch, a round, a ballot's number; 0 where there is none.
	Term lsn.Term
}
