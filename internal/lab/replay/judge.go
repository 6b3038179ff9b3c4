package replay

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/history"
	"github.com/bmqelect/bmqelect/internal/lab/report"
	"github.com/bmqelect/bmqelect/internal/lab/scenario"
	"github.com/bmqelect/bmqelect/lsn"
)

// Judge holds a history against every expectation of a scenario.
func Judge(sc *scenario.Scenario, h *history.History) []report.Verdict {
	var verdicts []report.Verdict
	for _, e := range sc.Expect {
		v := report.Verdict{Text: e.Text, From: e.From, To: e.To}
		v.Held, v.At, v.Seen = judge(h, e)
		verdicts = append(verdicts, v)
	}
	return verdicts
}

// judge returns whether e held, where it first did not (or the beginning), and
// what was seen.
func judge(h *history.History, e scenario.Expectation) (held bool, at time.Duration, seen string) {
	switch want := e.Want.(type) {
	case scenario.Leader:
		return judgeLeader(h, e, want)
	case scenario.NoLeader:
		return judgeNoLeader(h, e, want)
	case scenario.LeaderWithin:
		return judgeWithin(h, e, want)
	case scenario.Changes:
		n := h.Summarize(e.From, e.To).LeaderChanges
		return want.Range.Holds(float64(n)), e.From, fmt.Sprintf("%d leader changes", n)
	case scenario.MaxTerm:
		return judgeMaxTerm(h, e, want)
	case scenario.Availability:
		share := h.Summarize(e.From, e.To).Availability
		return want.Range.Holds(share), e.From, fmt.Sprintf("availability %.2f %%", 100*share)
	case scenario.MessageRate:
		rate := float64(h.MessagesIn(e.From, e.To)) / (e.To - e.From).Seconds()
		return want.Range.Holds(rate), e.From, fmt.Sprintf("%.1f messages a second", rate)
	}
	return false, e.From, fmt.Sprintf("an expectation that this program cannot judge: %T", e.Want)
}

// pieces are the reigns of an expectation's window, or of its moment.
func pieces(h *history.History, e scenario.Expectation) []history.Reign {
	if e.Moment() {
		return []history.Reign{{From: e.From, To: e.From, Leader: h.LeaderAt(e.From)}}
	}
	return h.Reigns(e.From, e.To)
}

func judgeLeader(h *history.History, e scenario.Expectation, want scenario.Leader) (bool, time.Duration, string) {
	var last history.NodeID
	for _, r := range pieces(h, e) {
		if !slices.Contains(want.AnyOf, r.Leader) {
			return false, r.From, whoLed(h, r)
		}
		if at, term, ok := termOf(h, r); want.Term != 0 && ok && term != want.Term {
			return false, at, fmt.Sprintf("%s led in term %d", r.Leader, term)
		}
		if at, seen, ok := strayed(h, r, want.Followers); !ok {
			return false, at, seen
		}
		last = r.Leader
	}
	return true, e.From, fmt.Sprintf("%s led", last)
}

// whoLed describes a reign that should have been another.
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

// termOf finds the first term other than the first one in a reign, or that one.
func termOf(h *history.History, r history.Reign) (at time.Duration, term lsn.Term, ok bool) {
	l := h.Lane(r.Leader)
	if l == nil {
		return 0, 0, false
	}
	first := l.At(r.From).Term
	for _, s := range l.Spans {
		if s.From > r.From && s.From < r.To && s.Term != first {
			return s.From, s.Term, true
		}
	}
	return r.From, first, true
}

// strayed finds a follower that did not follow throughout a reign.
func strayed(h *history.History, r history.Reign, followers []history.NodeID) (at time.Duration, seen string, ok bool) {
	for _, id := range followers {
		l := h.Lane(id)
		if l.At(r.From).Leader != r.Leader {
			return r.From, describe(l, r.From), false
		}
		for _, s := range l.Spans {
			if s.From > r.From && s.From < r.To && s.Leader != r.Leader {
				return s.From, describe(l, s.From), false
			}
		}
	}
	return 0, "", true
}

func judgeNoLeader(h *history.History, e scenario.Expectation, want scenario.NoLeader) (bool, time.Duration, string) {
	for i := range h.Lanes {
		l := &h.Lanes[i]
		if len(want.Nodes) > 0 && !slices.Contains(want.Nodes, l.Node) {
			continue
		}
		for _, s := range l.Spans {
			from := max(s.From, e.From)
			overlaps := s.From < e.To && s.To > e.From || e.Moment() && s.From <= e.From && e.From < s.To
			if overlaps && hasLeader(s, from) {
				return false, from, describe(l, from)
			}
		}
	}
	return true, e.From, "no leader"
}

// hasLeader reports whether a node in that state follows somebody or leads.
func hasLeader(s history.Span, t time.Duration) bool {
	if s.Process == history.Down || s.Leader == "" {
		return false
	}
	return s.Role != elector.Leader || t < s.LeaseUntil
}

func judgeWithin(h *history.History, e scenario.Expectation, want scenario.LeaderWithin) (bool, time.Duration, string) {
	end := e.From + want.Within
	for _, r := range h.Reigns(e.From, end+1) {
		if r.Leader != "" {
			return true, r.From, fmt.Sprintf("%s led after %s", r.Leader, (r.From - e.From).Round(time.Millisecond))
		}
	}
	return false, end, whoLed(h, history.Reign{From: end})
}

func judgeMaxTerm(h *history.History, e scenario.Expectation, want scenario.MaxTerm) (bool, time.Duration, string) {
	if e.Moment() {
		e.To++
	}
	highest := h.MaxTermIn(e.From, e.To)
	return highest <= want.Term, e.From, fmt.Sprintf("highest term %d", highest)
}
