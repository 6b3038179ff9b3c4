package report

import (
	"bytes"
	_ "embed"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/template"

	"github.com/bmqelect/bmqelect/internal/lab/compare"
)

// Example is a scenario that breaks an algorithm, as `bmqnode replay` shows.
type Example struct {
	Algorithm string
	Scenario  string // its name
	Why       string // the rule that breaks
	Cost      string // what the run cost
}

//go:embed laboratory.tmpl
var laboratoryPage string

// LaboratoryPage writes docs/laboratory.md: what package compare found, where others are
// better than ours, and what breaks them.
func LaboratoryPage(
	rows []compare.Row, losses []compare.Loss, examples []Example,
) ([]byte, error) {
	var table, page bytes.Buffer
	if err := LaboratoryTable(&table, rows); err != nil {
		return nil, err
	}
	seeds := rows[0].Seeds
	for _, r := range rows {
		seeds = min(seeds, r.Seeds)
	}
	err := template.Must(template.New("page").Parse(laboratoryPage)).Execute(&page, map[string]any{
		"Table": table.String(), "Seeds": seeds, "Losses": lossLines(losses), "Examples": examples,
	})
	return page.Bytes(), err
}

// lossLines has a line for each topology: of each metric the network on which ours is behind
// most. What is lost of the availability is lost of the recovery, too.
func lossLines(losses []compare.Loss) (lines []string) {
	for _, l := range losses {
		var figures []string
		for _, m := range compare.Metrics {
			var most compare.Beaten
			for _, f := range l.Figures {
				if f.Metric.Name == m.Name && (most.Network == "" ||
					math.Abs(f.Ours.Mean-f.Best) > math.Abs(most.Ours.Mean-most.Best)) {
					most = f
				}
			}
			if most.Network == "" {
				continue
			}
			own := fmt.Sprintf("%s %s %s (%s-%s)", m.Title, brief(most.Ours.Mean), m.Unit,
				brief(most.Ours.Low), brief(most.Ours.High))
			if most.Rival != "" {
				own += fmt.Sprintf(", %s %s %s", most.Rival, brief(most.Best), m.Unit)
			}
			figures = append(figures, own)
		}
		recovery := func(f compare.Beaten) bool { return f.Metric.Name == "recovery_s" }
		if l.Figures[0].Metric.Most && slices.ContainsFunc(l.Figures, recovery) {
			figures = figures[1:]
		}
		text := fmt.Sprintf("- **%s**: %s. %s.", l.Topology, strings.Join(figures, "; "), l.Why)
		lines = append(lines, strings.Join(wrap(text, 98), "\n  "))
	}
	return lines
}

// tableColumns are the figures of the table: the worst of all topologies and networks. Where
// a topology is named, it is the figure of that topology on the first network.
var tableColumns = []struct{ head, unit, metric, topology string }{
	{"availability", "%", "availability", ""},
	{"no leader", "s", "recovery_s", ""},
	{"demotions", "/h", "demotions_per_hour", ""},
	{"two leaders", "s", "overlap_s", ""},
	{"crash known", "s", "last_knows_s", "process-crash"},
	{"messages", "/s", "messages_per_s", "whole"},
	{"bytes", "/s", "bytes_per_s", "whole"},
}

// LaboratoryTable writes a line for each algorithm.
func LaboratoryTable(w io.Writer, rows []compare.Row) error {
	algorithms := compare.Names(rows, func(r compare.Row) string { return r.Algorithm })
	width := 0
	for _, a := range algorithms {
		width = max(width, len(a))
	}
	head, units := strings.Repeat(" ", width), strings.Repeat(" ", width)
	for _, c := range tableColumns {
		head += padLeft(c.head, len(c.head)+2)
		units += padLeft(c.unit, len(c.head)+2)
	}
	lines := []string{head, units}
	for _, a := range algorithms {
		line := pad(a, width)
		for _, c := range tableColumns {
			text := "-"
			if v, ok := worst(rows, a, c.metric, c.topology); ok {
				text = brief(v)
			}
			line += padLeft(text, len(c.head)+2)
		}
		lines = append(lines, line)
	}
	_, err := fmt.Fprintln(w, strings.Join(lines, "\n"))
	return err
}

// worst is the worst mean of an algorithm; with a topology that of the topology on the first
// network.
func worst(rows []compare.Row, algorithm, metric, topology string) (v float64, ok bool) {
	most := compare.Metrics[slices.IndexFunc(compare.Metrics,
		func(m compare.Metric) bool { return m.Name == metric })].Most
	for _, r := range rows {
		if r.Algorithm != algorithm || topology != "" &&
			(r.Topology != topology || r.Network != rows[0].Network) {
			continue
		}
		mean := r.Values[metric].Mean
		if !ok || (mean < v) == most {
			v, ok = mean, true
		}
	}
	return v, ok
}
