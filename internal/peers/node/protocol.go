package node

// Commands to a process, each a line.
const (
	AskLeads = "leads?"   // answered by Answer
	HandOver = "handover" // answered by Failed, or else not
	Watch    = "watch"    // begin to sample Member.Leads
	Unwatch  = "unwatch"  // answered by a Led for each span of yes, then by Watched
)

// Kind is that of a report.
type Kind string

const (
	Saw     Kind = "saw"     // at From, Leader was seen
	Answer  Kind = "answer"  // Yes
	Failed  Kind = "failed"  // the handover; Text says why
	Led     Kind = "led"     // every sample from From to To was yes
	Watched Kind = "watched" // no further Led
)

// Report is what a process tells, a line of JSON each. What its Kind does not mention is zero.
type Report struct {
	Kind     Kind
	From, To int64 // as Now
	Yes      bool
	// Text is an error, or a leader: its name, or the name, a dot and its Spec.Life where
	// what is seen may be of a process that is gone.
	Text string
}
