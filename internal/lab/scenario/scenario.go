// Package scenario is the file format in which people say how a network
// misbehaved and what must be seen: a cluster, a timeline of faults, and
// expectations. It reads and checks files; it runs nothing. The reference of the
// format is docs/scenarios-format.md.
//
// Parse decodes YAML into structs of keys (fileKeys and those in it), whose values
// know their places. Only if nothing is wrong with that, the builder reads what the
// keys say, reports every problem, and goes on. Only a finished Scenario, which nobody
// changes, is for concurrent use.
//
// How a step reaches a link, in the order of the calls, for {cut: [a-b]}:
//
//	here       builder.cut makes an Action of the pairs a->b and b->a
//	simulated  replay's player.do calls sim.Cut for each; sim.setCut sets
//	           direction.cut, and what is sent or arrives there is lost;
//	           armReadDeadline ends the connection after LinkTimeout
//	live       replay's live.act notes the pairs in its faultPlan and sends each
//	           process its own by the admin API (POST /v1/faults); its mesh drops them
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
	Join         bool     // an observer that knows no voters
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

// Action is what a step does. Do is the word of the format, but reset for a cut with
// how: reset, and cut or reset for an isolation. It says which fields mean something.
type Action struct {
	Do string
	// Directions, of cut, reset, heal, partition and link: whose connections break (each link
	// once), which are cut, which are healed, and which behave as Link from now on.
	Reset, Cut, Heal, Linked []Pair
	Link                     Link
	// Nodes are those of crash, restart, pause, resume, stop, step-down, unfit and fit.
	Nodes    []NodeID
	Unsynced string        // crash: "lose" or "keep" what is being written; by chance if ""
	Wipe     bool          // restart: on an empty disk
	Join     bool          // restart: as a node that knows no voters
	Lost     []NodeID      // restart: after an emergency that declared these lost
	Rest     time.Duration // step-down: for so long the nodes must not stand
	To       NodeID        // transfer: whom the leader hands over to; the best if ""
	Value    string        // publish
	Add      []NodeID      // add-voter, replace-voter
	Remove   []NodeID      // remove-voter, replace-voter
	Via      NodeID        // the node that is asked for these; "" for the leader
}

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

// Want is what must be seen. Key is the word of the format, which says which fields
// mean something.
type Want struct {
	Key string
	// Nodes are those of which one leads throughout (leader), or which follow and hold
	// no leadership throughout (no_leader; all nodes if empty), which the newest committed record
	// names (voters), which show the value (record; any node if empty), or which do not come to
	// lead (not_elected).
	Nodes     []NodeID
	Value     string        // record: of the newest committed record
	Do        string        // refused: the word of an action
	Followers []NodeID      // leader: all of them follow it
	Term      lsn.Term      // leader: it leads in this one, if not 0; max_term: the highest
	Within    time.Duration // leader_within: so long after From somebody must lead
	// Range bounds leader_changes (a node leads that was not the last to lead),
	// availability (the share of the time with a leader, from 0 to 1) and
	// messages_per_second (one per receiver).
	Range Range
}

// Range bounds a figure; a missing bound is infinite.
type Range struct{ Min, Max float64 }

// Holds reports whether v is within the range, bounds included.
func (r Range) Holds(v float64) bool { return r.Min <= v && v <= r.Max }
