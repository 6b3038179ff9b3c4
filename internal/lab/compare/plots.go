package compare

import (
	"slices"

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
	{"availability", "availability", "Availability, %",
		func(v float64) float64 { return 100 - v }, report.Scale{Least: 0.1, Most: 100}},
	{"recovery", "recovery_s", "Time without a leader until the repair, s", same,
		report.Scale{Least: 0.1, Most: 40}},
	{"demotions", "demotions_per_hour", "Leaders that were well and were deposed, an hour", same,
		report.Scale{Least: 0.1, Most: 1000}},
	{"overlap", "overlap_s", "Time with two leaders, s", same, report.Scale{Least: 0.1, Most: 60}},
}

// panels are the pictures of some figures of a topology; each figure has a mark.
var panels = map[string]report.Dots{
	"crash": {Title: "Until survivors of a crash know a new leader, s",
		About: "The first survivor is a circle, the last one a square.", Panels: []report.Panel{
			crashPanel("its process is killed", "process-crash"),
			crashPanel("its host vanishes", "host-crash"),
		}},
	"cost": {Title: "What is sent while nothing goes wrong",
		About: "Of five nodes together.", Panels: []report.Panel{
			{Title: "messages a second", Column: "whole", Marks: []string{"messages_per_s"},
				Scale: report.Scale{Least: 1, Most: 1000}},
			{Title: "bytes a second", Column: "whole", Marks: []string{"bytes_per_s"},
				Scale: report.Scale{Least: 10, Most: 10_000}},
		}},
}

func crashPanel(title, topology string) report.Panel {
	return report.Panel{Title: title, Column: topology,
		Marks: []string{"first_knows_s", "last_knows_s"}, Scale: report.Scale{Least: 0.001, Most: 100}}
}

// plots draws rows: pictures by their names.
func plots(rows []Row) map[string][]byte {
	grid := report.Grid{
		Parts:   Names(rows, func(r Row) string { return r.Network }),
		Lines:   Names(rows, func(r Row) string { return r.Algorithm }),
		Columns: Names(rows, func(r Row) string { return r.Topology }),
		Strong:  ours.Elector.Name,
	}
	grid.At = func(part, line, column, mark string) (report.Interval, bool) {
		i := slices.IndexFunc(rows, func(r Row) bool {
			return r.Network == part && r.Algorithm == line && r.Topology == column
		})
		if i < 0 {
			return report.Interval{}, false
		}
		return report.Interval(rows[i].Values[mark]), true
	}
	files := map[string][]byte{}
	for _, h := range heats {
		heat := report.Heat{Title: h.title, Mark: h.metric, Bad: h.bad, Scale: h.scale}
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
