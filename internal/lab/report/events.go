package report

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/history"
	"github.com/bmqelect/bmqelect/internal/lab/verdict"
)

// event is one line of what happened: a mark of the timeline, or a transition of
// a node.
type event struct {
	At       time.Duration
	Node     string // "" for the timeline
	Text     string
	from, to elector.Role // of a transition
}

// eventsOf merges marks and transitions; at the same time the marks come first.
func eventsOf(h *history.History) []event {
	var all []event
	for _, m := range h.Marks {
		all = append(all, event{At: m.At, Text: plain(markText(m))})
	}
	for _, l := range h.Lanes {
		for _, t := range l.Transitions {
			roles := t.From.String() + " -> " + t.To.String()
			if t.From == t.To {
				roles = t.To.String()
			}
			text := fmt.Sprintf("%s %s term=%d", roles, t.Reason, t.Term)
			if t.Leader != "" && t.To != elector.Leader {
				text += " leader=" + string(t.Leader)
			}
			if t.Peer != "" && t.Peer != t.Leader {
				text += " peer=" + string(t.Peer)
			}
			all = append(all, event{t.At, plain(string(l.Node)), plain(text), t.From, t.To})
		}
	}
	slices.SortStableFunc(all, func(a, b event) int { return cmp.Compare(a.At, b.At) })
	return all
}

// markText is what the timeline did, and why it had no effect.
func markText(m history.Mark) string {
	if m.Note == "" {
		return m.Text
	}
	return m.Text + " (no effect: " + m.Note + ")"
}

// where says where an expectation broke. What is judged by its window as a whole,
// as a count is, broke at no moment.
func where(v verdict.Verdict) string {
	if v.Held || v.At == v.From && v.To > v.From {
		return "seen"
	}
	return "seen at " + seconds(v.At)
}

// problem is an invariant that broke, or what else went wrong with a run.
type problem struct{ Kind, Text string }

func problemsOf(h *history.History) []problem {
	var all []problem
	for _, text := range h.Broken {
		all = append(all, problem{"invariant broken", text})
	}
	for _, text := range h.Problems {
		all = append(all, problem{"problem with the run", text})
	}
	return all
}

// title names a run among all scenarios.
func title(h *history.History) string {
	if h.Variant == "" {
		return plain(h.Scenario)
	}
	return plain(h.Scenario + " [" + h.Variant + "]")
}

// variant names a run among those that it is compared with.
func variant(h *history.History) string { return plain(cmp.Or(h.Variant, "as written")) }
