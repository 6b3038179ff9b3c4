package report

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/bmqelect/bmqelect/internal/lab/history"
)

// JSON writes runs as one event per line, see the package comment. It returns
// the error of w.
func JSON(w io.Writer, runs []Run) error {
	out := bufio.NewWriter(w)
	enc := json.NewEncoder(out)
	for i, r := range runs {
		for _, event := range jsonEvents(i, r) {
			if err := enc.Encode(event); err != nil {
				return fmt.Errorf("write report: %w", err)
			}
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// jsonEvents are the lines of one run.
func jsonEvents(index int, r Run) []any {
	events := []any{jsonHead(index, r)}
	events = append(events, jsonTimeline(index, r.History)...)
	for _, text := range r.History.Broken {
		events = append(events, jsonProblem{head{"problem", index}, "invariant", text})
	}
	for _, text := range r.History.Problems {
		events = append(events, jsonProblem{head{"problem", index}, "run", text})
	}
	for _, v := range r.Verdicts {
		events = append(events, jsonVerdict{head{"verdict", index}, v.Held, v.Text, v.Seen, v.At.Seconds(), v.From.Seconds(), v.To.Seconds()})
	}
	return append(events, jsonFigures(index, r))
}

func jsonHead(index int, r Run) jsonRun {
	h := r.History
	run := jsonRun{
		head: head{"run", index}, Scenario: h.Scenario, Variant: h.Variant, About: r.About, Mode: h.Mode, Seed: h.Seed,
		DurationS: h.Duration.Seconds(), Quorum: h.Quorum, NoLease: h.NoLease, Nodes: []jsonNode{},
	}
	for _, l := range h.Lanes {
		run.Nodes = append(run.Nodes, jsonNode{l.Node, l.Voter, l.Candidate})
	}
	return run
}

// jsonTimeline is what happened in order of time; at the same time, in the order
// marks, cuts, transitions, messages.
func jsonTimeline(index int, h *history.History) []any {
	type timed struct {
		at    time.Duration
		event any
	}
	var all []timed
	add := func(at time.Duration, event any) { all = append(all, timed{at, event}) }
	for _, m := range h.Marks {
		add(m.At, jsonMark{head{"mark", index}, m.At.Seconds(), m.Text, m.Note})
	}
	for _, c := range h.Cuts {
		add(c.Start, jsonCut{head{"cut", index}, c.Start.Seconds(), finite(c.End), c.From, c.To})
	}
	for _, l := range h.Lanes {
		for _, t := range l.Transitions {
			add(t.At, jsonTransition{
				head{"transition", index}, t.At.Seconds(), l.Node,
				t.From.String(), t.To.String(), t.Reason.String(), t.Term, t.Leader, t.Peer,
			})
		}
	}
	for _, a := range h.Arrows {
		add(a.Sent, jsonMessage{head{"message", index}, a.Sent.Seconds(), finite(a.Received), a.From, a.To, a.Kind.String(), a.Text})
	}
	slices.SortStableFunc(all, func(a, b timed) int { return cmp.Compare(a.at, b.at) })
	events := make([]any, len(all))
	for i, t := range all {
		events[i] = t.event
	}
	return events
}

// finite is a time in seconds, nil for history.Forever.
func finite(t time.Duration) *float64 {
	if t == history.Forever {
		return nil
	}
	s := t.Seconds()
	return &s
}

func jsonFigures(index int, r Run) jsonSummary {
	s := r.summary()
	failovers := make([]float64, len(s.Failovers))
	for i, d := range s.Failovers {
		failovers[i] = d.Seconds()
	}
	return jsonSummary{
		head{"summary", index}, r.Held(), s.LeaderChanges, s.Demotions, s.Leaderless.Seconds(),
		s.Availability, s.MaxTerm, s.Messages, failovers,
	}
}
