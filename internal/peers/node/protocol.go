package node

import (
	"fmt"
	"strings"
)

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

// Report is a line from a process. What its Kind does not mention is zero.
type Report struct {
	Kind     Kind
	From, To int64 // as Now
	Yes      bool
	// Text is an error, or a leader: its name, or the name, a dot and its Spec.Life where
	// what is seen may be of a process that is gone.
	Text string
}

// String is the line without its end; Parse reads it.
func (r Report) String() string {
	return fmt.Sprintf("%s %d %d %t %s", r.Kind, r.From, r.To, r.Yes,
		strings.ReplaceAll(r.Text, "\n", " "))
}

// Parse reads the line of a report.
func Parse(line string) (r Report, err error) {
	fields := strings.SplitN(line, " ", 5)
	if len(fields) != 5 {
		return r, fmt.Errorf("report %q: %d fields, want 5", line, len(fields))
	}
	r.Kind, r.Text = Kind(fields[0]), fields[4]
	if _, err := fmt.Sscan(strings.Join(fields[1:4], " "), &r.From, &r.To, &r.Yes); err != nil {
		return r, fmt.Errorf("report %q: %w", line, err)
	}
	return r, nil
}
