// Package verdict says whether a run of a scenario went as it should. A Run
// holds the history, what was expected of it, and what was seen instead.
package verdict

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bmqelect/bmqelect/elector"
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

// judge returns whether e held, where it first did not (or the beginning of its
// window), and what was seen.
func judge(h *history.History, e scenario.Expectation) (held bool, at time.Duration, seen string) {
	want := e.Want
	switch want.Key {
	case "leader":
		return judgeLeader(h, e)
	case "no_leader":
		return judgeNoLeader(h, e)
	case "record", "voters":
		return judgeRecord(h, e)
	case "refused":
		return judgeRefused(h, e)
	case "not_elected":
		return judgeNotElected(h, e)
	case "leader_within":
		last := e.From + want.Within
		for _, r := range h.Reigns(e.From, last+1) {
			switch after := r.From - e.From; {
			case r.Leader != "" && after == 0:
				return true, r.From, fmt.Sprintf("%s led already at %s", r.Leader, r.From)
			case r.Leader != "":
				return true, r.From, fmt.Sprintf("%s led after %s", r.Leader, after.Round(time.Millisecond))
			}
		}
		return false, last, whoLed(h, history.Reign{From: last})
	case "leader_changes":
		n := h.Summarize(e.From, e.To).LeaderChanges
		return want.Range.Holds(float64(n)), e.From, fmt.Sprintf("leader changes: %d", n)
	case "max_term":
		highest := h.MaxTermIn(e.From, end(e))
		return highest <= want.Term, e.From, fmt.Sprintf("highest term %d", highest)
	case "availability":
		share := h.Summarize(e.From, e.To).Availability
		return want.Range.Holds(share), e.From, fmt.Sprintf("availability %.2f %%", 100*share)
	case "messages_per_second":
		rate := float64(h.MessagesIn(e.From, e.To)) / (e.To - e.From).Seconds()
		return want.Range.Holds(rate), e.From, fmt.Sprintf("%.1f messages a second", rate)
	}
	return false, e.From, fmt.Sprintf("this program cannot judge %q", want.Key)
}

// end is that of the window, of which it is no part; a moment is a window of 1 ns.
func end(e scenario.Expectation) time.Duration { return max(e.To, e.From+1) }

// judgeLeader wants every reign of the window to be of one of these leaders, in
// the term that is wanted, and with all the followers that are wanted.
func judgeLeader(h *history.History, e scenario.Expectation) (bool, time.Duration, string) {
	want, reigns := e.Want, h.Reigns(e.From, end(e))
	for _, r := range reigns {
		if !slices.Contains(want.Nodes, r.Leader) {
			return false, r.From, whoLed(h, r)
		}
		if leader := h.Lane(r.Leader); want.Term != 0 && leader != nil {
			for _, s := range during(leader, r) {
				if s.Term != want.Term {
					return false, s.From, fmt.Sprintf("%s led in term %d", r.Leader, s.Term)
				}
			}
		}
		for _, id := range want.Followers {
			follower := h.Lane(id)
			for _, s := range during(follower, r) {
				if s.Leader != r.Leader {
					return false, s.From, describe(follower, s.From)
				}
			}
		}
	}
	return true, e.From, fmt.Sprintf("%s led", reigns[len(reigns)-1].Leader)
}

// during are the spans of a lane in a reign. The first one begins with it.
func during(l *history.Lane, r history.Reign) (spans []history.Span) {
	for _, s := range l.Spans {
		if s.From < r.To && s.To > r.From {
			s.From = max(s.From, r.From)
			spans = append(spans, s)
		}
	}
	return spans
}

// whoLed describes who led instead of the node that was expected.
func whoLed(h *history.History, r history.Reign) string {
	if r.Leader != "" {
		return fmt.Sprintf("%s led", r.Leader)
	}
	var views []string
	for i := range h.Lanes {
		views = append(views, describe(&h.Lanes[i], r.From))
	}
	return "nobody led (" + strings.Join(views, ", ") + ")"
}

// describe says in a few words what a node was at a moment.
func describe(l *history.Lane, t time.Duration) string {
	s := l.At(t)
	switch {
	case s.Process != history.Up:
		return fmt.Sprintf("%s %s", l.Node, s.Process)
	case s.Role == elector.Leader && t >= s.LeaseUntil:
		return fmt.Sprintf("%s LEADER without lease", l.Node)
	case s.Role == elector.Follower && s.Leader != "":
		return fmt.Sprintf("%s follows %s", l.Node, s.Leader)
	}
	return fmt.Sprintf("%s %s", l.Node, s.Role)
}

// judgeNoLeader wants none of the nodes to follow anybody or to hold a lease.
func judgeNoLeader(h *history.History, e scenario.Expectation) (bool, time.Duration, string) {
	want := e.Want
	for i := range h.Lanes {
		l := &h.Lanes[i]
		if len(want.Nodes) > 0 && !slices.Contains(want.Nodes, l.Node) {
			continue
		}
		for _, s := range l.Spans {
			if s.From >= end(e) || s.To <= e.From || s.Process == history.Down || s.Leader == "" {
				continue
			}
			from := max(s.From, e.From)
			if s.Role != elector.Leader || from < s.LeaseUntil {
				return false, from, describe(l, from)
			}
		}
	}
	return true, e.From, "no leader"
}
