package verdict

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/base/words"
	"github.com/bmqelect/bmqelect/internal/lab/history"
	"github.com/bmqelect/bmqelect/internal/lab/scenario"
)

// judgeRecord wants the newest committed record to have a value or voters, throughout.
func judgeRecord(h *history.History, e scenario.Expectation) (bool, time.Duration, string) {
	seen := ""
	for _, t := range h.Moments(e.From, end(e)) {
		newest, voters := h.NewestAt(t)
		if e.Want.Key == "voters" {
			if seen = "voters " + words.List(voters); !sameNodes(voters, e.Want.Nodes) {
				return false, t, seen
			}
			continue
		}
		if seen = describeRecord(newest); newest.Value != e.Want.Value {
			return false, t, seen
		}
		for _, id := range e.Want.Nodes {
			shown := h.Record(h.Lane(id).At(t).Shown)
			if shown.Value != e.Want.Value {
				return false, t, fmt.Sprintf("%s shows %s", id, describeRecord(shown))
			}
		}
	}
	return true, e.From, seen
}

func describeRecord(r history.Record) string {
	switch {
	case len(r.Voters) == 0:
		return "no record"
	case r.Value == "":
		return fmt.Sprintf("record %s without a value", r.LSN)
	}
	return fmt.Sprintf("record %s, %s", r.LSN, r.Value)
}

func sameNodes(a, b []history.NodeID) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// judgeRefused wants a step of that kind in the window that had no effect.
func judgeRefused(h *history.History, e scenario.Expectation) (bool, time.Duration, string) {
	seen := "nothing was asked"
	for _, m := range h.Marks {
		if m.At < e.From || m.At >= end(e) || !strings.HasPrefix(m.Text, e.Want.Do) {
			continue
		}
		if seen = m.Text + " was done"; m.Note != "" {
			return true, m.At, m.Text + ": " + m.Note
		}
	}
	return false, e.From, seen
}

// judgeNotElected wants none of the nodes to come to lead.
func judgeNotElected(h *history.History, e scenario.Expectation) (bool, time.Duration, string) {
	for _, id := range e.Want.Nodes {
		for _, t := range h.Lane(id).Transitions {
			if t.To == elector.Leader && t.At >= e.From && t.At < end(e) {
				return false, t.At, fmt.Sprintf("%s was elected in term %d", id, t.Term)
			}
		}
	}
	return true, e.From, "none of them was elected"
}
