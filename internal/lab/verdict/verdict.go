// Package verdict says whether a run of a scenario went as it should. A Run
// holds the history, what was expected of it, and what was seen instead.
package verdict

import (
	"time"

	"github.com/bmqelect/bmqelect/internal/lab/history"
	"github.com/bmqelect/bmqelect/internal/lab/scenario"
)

// Verdict is the result of one expectation.
type Verdict struct {
	Text     string        // what was expected, as the file writes it
	Seen     string        // what was seen
	At       time.Duration // where it broke, or where its window starts
	From, To time.Duration // its window; equal for a moment
	Held     bool
}

// Run is one run of a scenario and its verdicts.
type Run struct {
	History  *history.History // must not be nil
	Verdicts []Verdict        // in the order of the file
	About    string           // what the scenario teaches; may be empty
}

// New judges a history by every expectation of its scenario.
func New(sc *scenario.Scenario, h *history.History) Run {
	run := Run{History: h, About: sc.About}
	for _, e := range sc.Expect {
		v := Verdict{Text: e.Text, From: e.From, To: e.To}
		v.Held, v.At, v.Seen = judge(h, e)
		run.Verdicts = append(run.Verdicts, v)
	}
	return run
}

// Held reports whether the run went as it should: every expectation and every
// invariant held, and the run itself had no problem.
func (r Run) Held() bool { return r.Failures() == 0 }

// Failures counts what did not hold: invariants, problems of the run, and
// expectations.
func (r Run) Failures() int {
	n := len(r.History.Broken) + len(r.History.Problems)
	for _, v := range r.Verdicts {
		if !v.Held {
			n++
		}
	}
	return n
}
