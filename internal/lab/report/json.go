package report

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/bmqelect/bmqelect/internal/lab/history"
	"github.com/bmqelect/bmqelect/internal/lab/verdict"
)

// JSON writes runs as one event per line, see the package comment. It returns
// the error of w.
func JSON(w io.Writer, runs []verdict.Run) error {
	out := bufio.NewWriter(w)
	enc, err := json.NewEncoder(out), error(nil)
	for i, r := range runs {
		for _, o := range jsonRun(i, r) {
			err = cmp.Or(err, enc.Encode(o))
		}
	}
	return written(cmp.Or(err, out.Flush()))
}

// object is a JSON object as pairs of key and value, which keep their order. What
// is nil or an empty string is left out.
type object []any

// MarshalJSON writes the object.
func (o object) MarshalJSON() ([]byte, error) {
	text := []byte{'{'}
	for i := 0; i < len(o); i += 2 {
		value, err := json.Marshal(o[i+1])
		if err != nil {
			return nil, err
		}
		if bytes.Equal(value, []byte("null")) || bytes.Equal(value, []byte(`""`)) {
			continue
		}
		if len(text) > 1 {
			text = append(text, ',')
		}
		text = append(fmt.Appendf(text, "%q:", o[i]), value...)
	}
	return append(text, '}'), nil
}

// jsonRun are the lines of one run.
func jsonRun(index int, r verdict.Run) []object {
	h := r.History
	line := func(kind string, fields ...any) object {
		return append(object{"type", kind, "run", index}, fields...)
	}
	nodes := []object{}
	for _, l := range h.Lanes {
		nodes = append(nodes, object{"node", l.Node, "voter", l.Voter, "candidate", l.Candidate})
	}
	lines := []object{line("run", "scenario", h.Scenario, "variant", h.Variant, "about", r.About,
		"mode", h.Mode, "seed", h.Seed, "duration_s", h.Duration.Seconds(), "quorum", h.Quorum,
		"no_lease", h.NoLease, "nodes", nodes)}
	lines = append(lines, jsonTimeline(h, line)...)
	for _, text := range h.Broken {
		lines = append(lines, line("problem", "kind", "invariant", "text", text))
	}
	for _, text := range h.Problems {
		lines = append(lines, line("problem", "kind", "run", "text", text))
	}
	for _, v := range r.Verdicts {
		lines = append(lines, line("verdict", "held", v.Held, "text", v.Text, "seen", v.Seen,
			"at_s", v.At.Seconds(), "from_s", v.From.Seconds(), "to_s", v.To.Seconds()))
	}
	sum := h.Summarize(0, h.Duration)
	failovers := []float64{}
	for _, d := range sum.Failovers {
		failovers = append(failovers, d.Seconds())
	}
	return append(lines, line("summary", "held", r.Held(), "two_leaders_s", sum.Overlap.Seconds(),
		"leader_changes", sum.LeaderChanges, "needless_demotions", sum.Demotions,
		"leaderless_s", sum.Leaderless.Seconds(), "availability", sum.Availability,
		"max_term", sum.MaxTerm, "messages", sum.Messages, "failovers_s", failovers))
}

// jsonTimeline is what happened in order of time; at the same time, in the order
// marks, cuts, transitions, messages.
func jsonTimeline(h *history.History, line func(kind string, fields ...any) object) []object {
	var lines []object
	add := func(kind string, at time.Duration, fields ...any) {
		lines = append(lines, line(kind, append([]any{"at_s", at.Seconds()}, fields...)...))
	}
	for _, m := range h.Marks {
		add("mark", m.At, "text", m.Text, "note", m.Note)
	}
	for _, c := range h.Cuts {
		add("cut", c.Start, "until_s", finite(c.End), "from", c.From, "to", c.To)
	}
	for _, l := range h.Lanes {
		for _, t := range l.Transitions {
			add("transition", t.At, "node", l.Node, "from", t.From.String(), "to", t.To.String(),
				"reason", t.Cause(), "term", t.Term, "leader", t.Leader, "peer", t.Peer)
		}
	}
	for _, v := range versionsOf(h) {
		add("record", v.from, "lsn", v.LSN.String(), "value", v.Value, "voters", v.Voters)
	}
	for _, a := range h.Arrows {
		add("message", a.Sent, "received_s", finite(a.Received), "from", a.From, "to", a.To,
			"kind", a.Kind, "text", a.Text)
	}
	at := func(o object) float64 { return o[5].(float64) } // at_s comes after type and run
	slices.SortStableFunc(lines, func(a, b object) int { return cmp.Compare(at(a), at(b)) })
	return lines
}

// finite is a time in seconds, nil for history.Forever.
func finite(t time.Duration) any {
	if t == history.Forever {
		return nil
	}
	return t.Seconds()
}
