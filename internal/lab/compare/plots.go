package compare

import (
	"strings"

	"github.com/bmqelect/bmqelect/internal/lab/algorithm/ours"
	"github.com/bmqelect/bmqelect/internal/lab/report"
)

// heats are the pictures of one figure in all topologies.
var heats = map[string]report.Heat{
	"overlap":      {Title: "Time with two leaders, s", Figure: "overlap_s", Most: 100},
	"demotions":    {Title: "Needless demotions, an hour", Figure: "demotions_per_hour", Most: 1000},
	"recovery":     {Title: "Time without a leader until the repair, s", Figure: "recovery_s", Most: 100},
	"availability": {Title: "Availability, %", Figure: "availability", Best: 100, Most: 100},
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
		Parts:   namesOf(rows, func(r Row) string { return r.Network }),
		Lines:   namesOf(rows, func(r Row) string { return r.Algorithm }),
		Columns: namesOf(rows, func(r Row) string { return r.Topology }),
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
	for name, heat := range heats {
		for _, t := range Topologies {
			heat.Legend = append(heat.Legend, t.Name+": "+t.About)
		}
		files[name] = heat.SVG(grid)
	}
	for name, dots := range panels {
		files[name] = dots.SVG(grid)
	}
	return files
}
