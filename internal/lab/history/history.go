// Package history is what happened in one run of a scenario, whether simulated
// or with real processes: what every node was at every moment, which links were
// cut, and which messages went. Expectations are judged by it and pictures are
// drawn from it; it knows nothing of either.
package history

import (
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/lsn"
)

// NodeID names a member.
type NodeID = elector.NodeID

// Forever is the end of what does not end within the run.
const Forever = time.Duration(1<<63 - 1)

// History is one run. Times are since the start of the timeline; what happened
// before, at negative times, is how the run began. It is complete and is not
// changed once the run has ended.
type History struct {
	Scenario string
	Variant  string // which of several compared, for example "scouting: false"; "" for the only one
	Mode     string // "simulated", "live" or "recorded"
	Seed     uint64
	Duration time.Duration
	Quorum   int
	// Inactivity is how long followers wait for a silent leader; see Summary.Demotions.
	Inactivity time.Duration
	NoLease    bool // the algorithm has none: LEADER is all that there is to being leader
	// Store is the life of what members ask for a lease; nil if the algorithm has no store.
	// StoreCuts are those between it and members.
	Store     *Lane
	StoreCuts []Cut

	Lanes    []Lane   // in the order of the scenario's nodes
	Records  []Record // all versions that any node has had, in no order
	Cuts     []Cut
	Marks    []Mark   // the timeline as it was played, in order of time
	Arrows   []Arrow  // the first MaxArrows messages, in order of sending; none if not recorded
	Sent     []Bucket // messages by time of sending, in order; only what is not empty
	Broken   []string // invariants that did not hold, with the trace; empty is good
	Problems []string // what else went wrong with the run itself
}

// Lane is the life of one node.
type Lane struct {
	Node        NodeID
	Voter       bool
	Candidate   bool
	Spans       []Span // without gaps, from at or before 0 to Duration
	Transitions []Transition
}

// Process is what the operating system would say of a node.
type Process uint8

// The states of a process.
const (
	Down Process = iota
	Up
	Paused
)

// String returns the state in lower case.
func (p Process) String() string { return [...]string{"down", "up", "paused"}[min(p, Paused)] }

// Span is a time in which a node stayed the same.
type Span struct {
	From, To time.Duration // To is not part of it
	Process  Process
	Role     elector.Role // Dormant while down
	Term     lsn.Term     // of the leadership that it holds or follows, or else its own
	MaxTerm  lsn.Term     // the highest that it knows of as its own
	Leader   NodeID       // that it follows, or itself if it leads; "" for none
	Accepted lsn.LSN      // the newest record that the node has; zero for none
	Shown    lsn.LSN      // the newest that it knows to be committed; zero for none since its start
	// LeaseUntil is when the lease of a LEADER runs out unless renewed after the
	// span; Forever where there are no leases, 0 for others.
	LeaseUntil time.Duration
}

// Record is a version of the election's record.
type Record struct {
	LSN    lsn.LSN
	Value  string // "" for none
	Voters []NodeID
}

// Transition is a change of role or leader.
type Transition struct {
	At time.Duration
	elector.Transition
	Why string // the rule of another algorithm than ours, in the words of its source
}

// Cause is the reason of our elector, or the rule of another algorithm.
func (t Transition) Cause() string {
	if t.Why != "" {
		return t.Why
	}
	return t.Reason.String()
}

// Cut is a time in which a direction of a link was silent.
type Cut struct {
	From, To   NodeID
	Start, End time.Duration
}

// Mark is something that the timeline did.
type Mark struct {
	At   time.Duration
	Text string // as in the file: "cut a-b"
	Note string // why it had no effect; "" if it had
}

// MaxArrows bounds how many messages a history keeps one by one.
const MaxArrows = 50_000

// Arrow is one message.
type Arrow struct {
	From, To       NodeID
	Sent, Received time.Duration // Received is Forever if it was lost
	Kind           string        // the name of the message, as the source of its algorithm has it
	Text           string        // the message on one line
}

// BucketSize is the time over which messages are counted together.
const BucketSize = 100 * time.Millisecond

// Bucket counts the messages sent in [At, At+BucketSize), one per receiver.
type Bucket struct {
	At    time.Duration
	Count int
}
