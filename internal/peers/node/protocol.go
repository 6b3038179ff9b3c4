package node

// Commands to a process, each a line on its standard input.
const (
	AskLeads = "leads?"   // answered by Answer
	HandOver = "handover" // answered by Failed if it fails, or else by nothing
	Watch    = "watch"    // begin to sample Member.Leads
	Unwatch  = "unwatch"  // answered by one Led for each span of yes, and then by Watched
)

// Kinds of reports.
const (
	Saw     = "saw"     // at From, the leader Text was seen
	Answer  = "answer"  // Yes
	Failed  = "failed"  // the handover; Text says why
	Led     = "led"     // every sample from From to To was yes
	Watched = "watched" // no further Led
)

// Report is what a process says on its standard output, in JSON. Fields that its Kind does
// not use are zero.
type Report struct {
	Kind     string
	From, To int64 // as Now
	Yes      bool
	// Text is an error, or a leader: its name. If it may be a process that is gone, a dot and
	// its Spec.Life follow.
	Text string
}
