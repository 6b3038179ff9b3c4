// Package scenario is the file format in which people say how a network
// misbehaved and what must be seen: a cluster, a timeline of faults, and
// expectations. It reads and checks files; it runs nothing. The reference of the
// format is docs/scenarios-format.md.
//
// Parse turns YAML into values with their places (value), applies overrides to
// them, and reads them key by key (object); each reader reports what is wrong and
// goes on, so that all problems are told at once. Nothing here is for concurrent
// use but a finished Scenario, which nobody changes.
package scenario

import (
	"fmt"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/lsn"
)

// NodeID names a node of a scenario.
type NodeID = elector.NodeID

// Scenario is one file, checked and with everything filled in.
type Scenario struct {
	File   string // as it was given
	Name   string
	About  string // what it teaches
	Source string // where the case comes from

	Nodes    []Node // in the order of the file
	Profile  string
	Scouting bool
	Election elector.Config // without Self, Priority and NotCandidate, which are the nodes'
	Network  Link           // how every link behaves unless the timeline says otherwise
	Begin    Begin
	Duration time.Duration
	Seed     uint64 // of the first run; 1 unless the file says otherwise
	// SimulatedOnly says why real processes cannot play it; "" if they can.
	SimulatedOnly string

	Timeline []Step // in order of time; repetitions are written out
	Expect   []Expectation
}

// Node is one member.
type Node struct {
	ID           NodeID
	NotCandidate bool
	Observer     bool
	Priority     int
	ClockRatePPM int64    // how much faster than true time its clock runs
	Term         lsn.Term // that its disk holds at first; 0 for a new disk
	Absent       bool     // does not start by itself; a restart starts it
}

// Begin is a leadership that is established at time 0; none if Leader is "".
type Begin struct {
	Leader NodeID
	Term   lsn.Term
}

// Link is how one direction of a link behaves. Shares are in parts per million.
type Link struct {
	Delay, Jitter            time.Duration
	Loss, Duplicate, Reorder int
}

// Pair is one direction of a link.
type Pair struct{ From, To NodeID }

// String returns the pair as the format writes it.
func (p Pair) String() string { return fmt.Sprintf("%s->%s", p.From, p.To) }

// Pos is a place in a file; lines and columns count from 1.
type Pos struct{ Line, Column int }

// Step is one thing that the timeline does.
type Step struct {
	At     time.Duration
	Pos    Pos
	Text   string // the action on one line, as the format writes it
	Action Action
}

// Action is one of Cut, Reset, Partition, Heal, Crash, Restart, Pause, Resume,
// Stop, SetLink, Transfer, StepDown, Fitness.
type Action interface{ isAction() }

// Cut silences directions. An isolation is a cut of all links of the nodes.
type Cut struct{ Pairs []Pair }

// Reset breaks the connections of these links, each given once, and cuts them
// (how: reset). A healed link can be connected again.
type Reset struct{ Pairs []Pair }

// Partition cuts every link between nodes of different groups and heals those
// within one. Nodes in no group are alone.
type Partition struct{ Groups [][]NodeID }

// Heal ends cuts: of everything, or of these directions.
type Heal struct {
	All   bool
	Pairs []Pair
}

// Crash ends processes without a word; the disk stays. Lose says that the terms
// which were being written are lost, Keep that they reached the disk though the
// process never heard so; by chance if neither.
type Crash struct {
	Nodes      []NodeID
	Lose, Keep bool
}

// Restart starts processes on their disks, or on empty ones.
type Restart struct {
	Nodes []NodeID
	Wipe  bool
}

// Pause freezes processes.
type Pause struct{ Nodes []NodeID }

// Resume lets them go on.
type Resume struct{ Nodes []NodeID }

// Stop ends processes gracefully.
type Stop struct{ Nodes []NodeID }

// SetLink replaces the behavior of directions.
type SetLink struct {
	Pairs []Pair
	Link  Link
}

// Transfer tells whoever leads to hand over to To, or to the best follower if
// To is "". It has no effect where nobody leads or the target is not fit.
type Transfer struct{ To NodeID }

// StepDown tells nodes not to lead any more, and not to stand for the time Rest.
type StepDown struct {
	Nodes []NodeID
	Rest  time.Duration
}

// Fitness says whether the applications of nodes can lead. At first, and after a
// restart, they can.
type Fitness struct {
	Nodes []NodeID
	Fit   bool
}

func (Cut) isAction()       {}
func (Reset) isAction()     {}
func (Partition) isAction() {}
func (Heal) isAction()      {}
func (Crash) isAction()     {}
func (Restart) isAction()   {}
func (Pause) isAction()     {}
func (Resume) isAction()    {}
func (Stop) isAction()      {}
func (SetLink) isAction()   {}
func (Transfer) isAction()  {}
func (StepDown) isAction()  {}
func (Fitness) isAction()   {}

// Expectation is one thing that must be seen, at a moment (From equals To) or in
// a window.
type Expectation struct {
	From, To time.Duration
	Pos      Pos
	Text     string // on one line, as the format writes it
	Want     Want
}

// Moment reports whether the expectation is about one moment.
func (e Expectation) Moment() bool { return e.From == e.To }

// Want is one of Leader, NoLeader, LeaderWithin, Changes, MaxTerm,
// Availability, MessageRate.
type Want interface{ isWant() }

// Leader wants one of these to lead throughout, in this term if it is not 0, and
// all of Followers to follow it.
type Leader struct {
	AnyOf     []NodeID
	Term      lsn.Term
	Followers []NodeID
}

// NoLeader wants these nodes to follow and hold no leadership throughout; all
// nodes if empty.
type NoLeader struct{ Nodes []NodeID }

// LeaderWithin wants some moment in the time after From at which somebody leads.
type LeaderWithin struct{ Within time.Duration }

// Range bounds a figure; a missing bound is infinite.
type Range struct{ Min, Max float64 }

// Holds reports whether v is within the range, bounds included.
func (r Range) Holds(v float64) bool { return r.Min <= v && v <= r.Max }

// Changes wants so many leader changes: a node leads that was not the last to lead.
type Changes struct{ Range Range }

// MaxTerm wants no node's term above it.
type MaxTerm struct{ Term lsn.Term }

// Availability wants that share of the time with a leader, from 0 to 1.
type Availability struct{ Range Range }

// MessageRate wants so many messages a second, one per receiver.
type MessageRate struct{ Range Range }

func (Leader) isWant()       {}
func (NoLeader) isWant()     {}
func (LeaderWithin) isWant() {}
func (Changes) isWant()      {}
func (MaxTerm) isWant()      {}
func (Availability) isWant() {}
func (MessageRate) isWant()  {}
