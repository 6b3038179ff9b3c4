package report

import (
	"time"

	"github.com/bmqelect/bmqelect/internal/lab/history"
)

// Verdict is what became of one expectation.
type Verdict struct {
	Text     string        // what was expected, as the file writes it
	Seen     string        // what was seen
	At       time.Duration // where it broke, or where its window starts
	From, To time.Duration // its window; equal for a moment
	Held     bool
}

// where says in words where it broke: nothing of what is judged by its window as
// a whole, as a count is.
func (v Verdict) where() string {
	if v.Held || v.At == v.From && v.To > v.From {
		return "seen"
	}
	return "seen at " + seconds(v.At)
}

// Run is one run of a scenario and what was made of it.
type Run struct {
	History  *history.History // must not be nil
	Verdicts []Verdict        // in the order of the file
	About    string           // what the scenario teaches; may be empty
}

// Held reports whether the run went as it should: every expectation and every
// invariant held, and the run itself had no problem.
func (r Run) Held() bool {
	return r.failures() == 0
}

// failures counts what went wrong.
func (r Run) failures() int {
	n := len(r.History.Broken) + len(r.History.Problems)
	for _, v := range r.Verdicts {
		if !v.Held {
			n++
		}
	}
	return n
}

// summary is the run in figures.
func (r Run) summary() history.Summary { return r.History.Summarize(0, r.History.Duration) }

// title names the run among all scenarios.
func (r Run) title() string {
	if r.History.Variant == "" {
		return r.History.Scenario
	}
	return r.History.Scenario + " [" + r.History.Variant + "]"
}

// variant names the run among those that it is compared with.
func (r Run) variant() string {
	if r.History.Variant == "" {
		return "as written"
	}
	return r.History.Variant
}

// longest is the duration of the longest run: the axis that all share.
func longest(runs []Run) time.Duration {
	var d time.Duration
	for _, r := range runs {
		d = max(d, r.History.Duration)
	}
	return d
}
