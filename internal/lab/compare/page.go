package compare

import (
	"bytes"
	_ "embed"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"text/template"

	"github.com/bmqelect/bmqelect/internal/lab/report"
)

//go:embed page.tmpl
var pageTemplate string

// Files makes the page and its pictures from rows. The keys are their paths in a repository. Files
// plays the scenarios of that repository that the page cites.
func Files(rows []Row, repository string) (map[string][]byte, error) {
	losses, err := Losses(rows)
	if err != nil {
		return nil, err
	}
	var shown []string
	for _, e := range examples {
		line, err := e.play(repository)
		if err != nil {
			return nil, err
		}
		shown = append(shown, line)
	}
	text, err := writePage(rows, losses, shown)
	files := map[string][]byte{page: text}
	for name, picture := range plots(rows) {
		files[filepath.Join(pictures, "laboratory-"+name+".svg")] = picture
	}
	return files, err
}

// writePage writes docs/laboratory.md: what was found, where others are better than ours, and
// what breaks them.
func writePage(rows []Row, losses []Loss, examples []string) ([]byte, error) {
	var table, page bytes.Buffer
	if err := writeTable(&table, rows); err != nil {
		return nil, err
	}
	seeds := rows[0].Seeds
	for _, r := range rows {
		seeds = min(seeds, r.Seeds)
	}
	err := template.Must(template.New("page").Parse(pageTemplate)).Execute(&page, map[string]any{
		"Table": table.String(), "Seeds": seeds, "Losses": lossLines(losses), "Examples": examples,
	})
	return page.Bytes(), err
}

// lossLines has a line for each topology: of each metric the network on which ours is behind
// most. What is lost of the availability is lost of the recovery, too.
func lossLines(losses []Loss) (lines []string) {
	for _, l := range losses {
		var figures []string
		for _, m := range Metrics {
			var most Beaten
			for _, f := range l.Figures {
				if f.Metric.Name == m.Name && (most.Network == "" ||
					math.Abs(f.Ours.Mean-f.Best) > math.Abs(most.Ours.Mean-most.Best)) {
					most = f
				}
			}
			if most.Network == "" {
				continue
			}
			own := fmt.Sprintf("%s %s %s (%s-%s)", m.Title, report.Brief(most.Ours.Mean), m.Unit,
				report.Brief(most.Ours.Low), report.Brief(most.Ours.High))
			if most.Rival != "" {
				own += fmt.Sprintf(", %s %s %s", most.Rival, report.Brief(most.Best), m.Unit)
			}
			figures = append(figures, own)
		}
		recovery := func(f Beaten) bool { return f.Metric.Name == "recovery_s" }
		if l.Figures[0].Metric.Most && slices.ContainsFunc(l.Figures, recovery) {
			figures = figures[1:]
		}
		text := fmt.Sprintf("- **%s**: %s. %s.", l.Topology, strings.Join(figures, "; "), l.Why)
		lines = append(lines, strings.Join(report.Wrap(text, 98), "\n  "))
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

// writeTable writes a line for each algorithm.
func writeTable(w io.Writer, rows []Row) error {
	algorithms := Names(rows, func(r Row) string { return r.Algorithm })
	width := 0
	for _, a := range algorithms {
		width = max(width, len(a))
	}
	head, units := strings.Repeat(" ", width), strings.Repeat(" ", width)
	for _, c := range tableColumns {
		head += "  " + c.head
		units += fmt.Sprintf("%*s", len(c.head)+2, c.unit)
	}
	lines := []string{head, units}
	for _, a := range algorithms {
		line := fmt.Sprintf("%-*s", width, a)
		for _, c := range tableColumns {
			text := "-"
			if v, ok := worst(rows, a, c.metric, c.topology); ok {
				text = report.Brief(v)
			}
			line += fmt.Sprintf("%*s", len(c.head)+2, text)
		}
		lines = append(lines, line)
	}
	_, err := fmt.Fprintln(w, strings.Join(lines, "\n"))
	return err
}

// worst is the worst mean of an algorithm; with a topology that of the topology on the first
// network.
func worst(rows []Row, algorithm, metric, topology string) (v float64, ok bool) {
	most := Metrics[slices.IndexFunc(Metrics,
		func(m Metric) bool { return m.Name == metric })].Most
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
