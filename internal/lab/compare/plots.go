package compare

import (
	"strings"

	"github.com/bmqelect/bmqelect/internal/lab/algorithm/ours"
	"github.com/bmqelect/bmqelect/internal/lab/report"
)

func same(v float64) float64 { return v }

// heats are the pictures of one figure in all topologies; bad is how bad it is, on the scale.
var heats = []struct {
	name, metric, title string
	bad                 func(v float64) float64
	scale               report.Scale
}{
	{"overlap", "overlap_s", "Time with two leaders, s", same, report.Scale{Least: 0.1, Most: 100}},
	{"demotions", "demotions_per_hour", "Needless demotions, an hour", same,
		report.Scale{Least: 0.1, Most: 1000}},
	{"recovery", "recovery_s", "Time without a leader until the repair, s", same,
		report.Scale{Least: 0.1, Most: 100}},
	{"availability", "availability", "Availability, %",
		func(v float64) float64 { return 100 - v }, report.Scale{Least: 0.1, Most: 100}},
}

// ownTimers goes before the name of a figure with own timers.
const ownTimers = "own "

// panels are the pictures of some figures of a topology.
var panels = map[string]report.Dots{
	"crash": {Title: "Until the survivors of a crash know a new leader",
		Marks: []string{"the first of them", "the last of them", "the last, with own timers"},
		Panels: []report.Panel{
			{Title: "The leader's process is killed", Unit: "s", Column: "process-crash",
				Figures: []string{"first_knows_s", "last_knows_s", ownTimers + "last_knows_s"}},
			{Title: "The leader's host vanishes", Unit: "s", Column: "host-crash",
				Figures: []string{"first_knows_s", "last_knows_s", ownTimers + "last_knows_s"}},
		}},
	"cost": {Title: "What five nodes send together while nothing goes wrong",
		Marks: []string{"with equal timers", "with own timers"},
		Panels: []report.Panel{
			{Title: "Messages", Unit: "a second", Column: "whole",
				Figures: []string{"messages_per_s", ownTimers + "messages_per_s"}},
			{Title: "Bytes", Unit: "a second", Column: "whole",
				Figures: []string{"bytes_per_s", ownTimers + "bytes_per_s"}},
		}},
}

// plots draws rows: pictures by their names.
func plots(rows []Row) map[string][]byte {
	grid := report.Grid{
		Parts:   Names(rows, func(r Row) string { return r.Network }),
		Lines:   Names(rows, func(r Row) string { return r.Algorithm }),
		Columns: Names(rows, func(r Row) string { return r.Topology }),
		Strong:  ours.Elector.Name,
	}
	byName := map[string]Row{}
	for _, r := range rows {
		byName[r.String()] = r
	}
	grid.At = func(part, line, column, figure string) (report.Interval, bool) {
		metric, own := strings.CutPrefix(figure, ownTimers)
		r, ok := byName[Row{Topology: column, Network: part, Algorithm: line, Own: own}.String()]
		return report.Interval(r.Values[metric]), ok
	}
	files := map[string][]byte{}
	for _, h := range heats {
		heat := report.Heat{Title: h.title, Figure: h.metric, Bad: h.bad, Scale: h.scale}
		for _, t := range Topologies {
			heat.Legend = append(heat.Legend, t.Name+": "+t.About)
		}
		files[h.name] = heat.SVG(grid)
	}
	for name, dots := range panels {
		files[name] = dots.SVG(grid)
	}
	return files
}
