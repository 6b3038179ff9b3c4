package node

import (
	"math"
	"time"
)

// Commands to a process, each a line on its standard input.
const (
	AskLeads = "leads?"   // answered by Answer
	HandOver = "handover" // answered by Failed if it fails, or else by nothing
	Sum      = "sum"      // answered by Summed
	Leave    = "leave"    // stop in good order; the process ends
	Watch    = "watch"    // begin to sample Member.Leads
	Unwatch  = "unwatch"  // answered by one Led for each span of yes, and then by Watched
	Write    = "write "   // and a Load in JSON: answered by Wrote, or Failed
	// Grow and the index of a node: writes 1 MiB and makes that node a voter; answered likewise.
	Grow = "grow "
	// Deadlock lets the application get stuck; the elector does not notice.
	Deadlock = "deadlock"
)

// Kinds of reports.
const (
	Saw     = "saw"     // at From, the leader Text was seen
	Answer  = "answer"  // Yes
	Failed  = "failed"  // the handover; Text says why
	Led     = "led"     // every sample from From to To was yes
	Watched = "watched" // no further Led
	Wrote   = "wrote"   // Took, from From to To
	Summed  = "summed"  // Sums
	Worked  = "worked"  // one item, by the node Text, from From to To; Took is that of its flush
)

// Load says what to write.
type Load struct {
	Places int           // that are written to at a time; in each, one value after the other
	Size   int           // of each value, in bytes
	For    time.Duration // and at least one value in each place
}

// Sums is what a node says about its elections.
type Sums struct {
	Led, Leaderless int           // that it leads, and in which it knows no leader
	Opened          time.Duration // opening them took
	// Gaps counts the times without a leader, by bounds in seconds; the last is above all of them.
	Bounds []float64
	Gaps   []uint64
}

// Within is a time within which at least a share of the gaps ended.
func (s *Sums) Within(share float64) time.Duration {
	var all, sum uint64
	for _, n := range s.Gaps {
		all += n
	}
	for i, bound := range s.Bounds {
		if sum += s.Gaps[i]; float64(sum) >= share*float64(all) {
			return time.Duration(bound * float64(time.Second))
		}
	}
	return math.MaxInt64
}

// Report is what a process says on its standard output, in JSON. Fields that its Kind does
// not use are zero.
type Report struct {
	Kind     string
	From, To int64 // as Now
	Yes      bool
	Took     []time.Duration `json:",omitempty"` // each write
	Sums     *Sums           `json:",omitempty"`
	// Text is an error, or a leader: its name. If it may be a process that is gone, a dot and
	// its Spec.Life follow.
	Text string
}
