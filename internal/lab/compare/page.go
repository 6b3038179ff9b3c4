package compare

import (
	"bytes"
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"text/template"

	"github.com/bmqelect/bmqelect/internal/lab/replay"
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
	var table, own, page bytes.Buffer
	err := errors.Join(writeTable(&table, equalRows(rows)), writeTable(&own, ownRows(rows)))
	if err != nil {
		return nil, err
	}
	seeds := slices.MinFunc(rows, func(a, b Row) int { return a.Seeds - b.Seeds }).Seeds
	err = template.Must(template.New("page").Parse(pageTemplate)).Execute(&page, map[string]any{
		"Table": table.String(), "Own": own.String(), "Seeds": seeds,
		"Rare":   report.Brief(300 / float64(seeds)), // the rule of three, in percent
		"Losses": lossLines(losses), "Examples": examples, "Deviations": deviations(),
	})
	return page.Bytes(), err
}

// deviations has a line for each algorithm.
func deviations() (lines []string) {
	for _, a := range replay.Algorithms() {
		lines = append(lines,
			entry("- **%s** (%s): %s.", a.Name, a.Source, cmp.Or(a.Deviates, "nowhere")))
	}
	return lines
}

// lossLines has a line for each topology. What is lost of the availability is lost of the
// recovery, too.
func lossLines(losses []Loss) (lines []string) {
	for _, l := range losses {
		own := worstLosses(l, true)
		if len(own) > 0 {
			own[0] = "with own timers " + own[0]
		}
		figures := strings.Join(append(worstLosses(l, false), own...), "; ")
		lines = append(lines, entry("- **%s**: %s. %s.", l.Topology, figures, l.Why))
	}
	return lines
}

// entry is one of a list.
func entry(format string, args ...any) string {
	return strings.Join(report.Wrap(fmt.Sprintf(format, args...), 98), "\n  ")
}

// worstLosses has, of each metric, the network on which ours is behind most.
func worstLosses(l Loss, own bool) (figures []string) {
	recovers := false
	for _, m := range Metrics {
		var most *Beaten
		for i, f := range l.Figures {
			if f.Metric.Name == m.Name && f.Own == own && (most == nil ||
				math.Abs(f.Ours.Mean-f.Best) > math.Abs(most.Ours.Mean-most.Best)) {
				most = &l.Figures[i]
			}
		}
		if most == nil || m.Name == "availability" && recovers {
			continue
		}
		recovers = recovers || m.Name == "recovery_s"
		text := fmt.Sprintf("%s %s %s (%s-%s; %s)", m.Title, report.Brief(most.Ours.Mean), m.Unit,
			report.Brief(most.Ours.Low), report.Brief(most.Ours.High), most.Network)
		if most.Rival != "" {
			text += fmt.Sprintf(", %s %s %s", most.Rival, report.Brief(most.Best), m.Unit)
		}
		figures = append(figures, text)
	}
	return figures
}

// tableColumns are the figures of the table: the worst of all topologies and networks. Where
// a topology is named, it is the figure of that topology on the first network.
var tableColumns = []struct{ head, unit, metric, topology string }{
	{"two leaders", "s", "overlap_s", ""},
	{"demotions", "/h", "demotions_per_hour", ""},
	{"no leader", "s", "recovery_s", ""},
	{"availability", "%", "availability", ""},
	{"crash known", "s", "last_knows_s", "process-crash"},
	{"messages", "/s", "messages_per_s", "whole"},
	{"bytes", "/s", "bytes_per_s", "whole"},
}

// ownRows are the rows with own timers, and those with equal ones beside them.
func ownRows(rows []Row) []Row {
	played := map[string]bool{}
	for _, r := range rows {
		if r.Own {
			played[r.Topology], played[r.Algorithm] = true, true
		}
	}
	return slices.DeleteFunc(slices.Clone(rows), func(r Row) bool {
		return !played[r.Topology] || !played[r.Algorithm]
	})
}

// equalRows are those with equal timers.
func equalRows(rows []Row) []Row {
	return slices.DeleteFunc(slices.Clone(rows), func(r Row) bool { return r.Own })
}

// writeTable has a line for each algorithm and its timers. The worst of each column has a star.
func writeTable(w io.Writer, rows []Row) error {
	names := namesOf(rows, Row.Line)
	if len(names) == 0 {
		return nil
	}
	width := len(slices.MaxFunc(names, func(a, b string) int { return len(a) - len(b) }))
	lines := []string{strings.Repeat(" ", width), strings.Repeat(" ", width)}
	for _, name := range names {
		lines = append(lines, fmt.Sprintf("%-*s", width, name))
	}
	for _, c := range tableColumns {
		lines[0] += "  " + c.head
		lines[1] += fmt.Sprintf("%*s", len(c.head)+2, c.unit)
		bottom, _ := worst(rows, "", c.metric, c.topology)
		for i, name := range names {
			text := "-"
			if v, ok := worst(rows, name, c.metric, c.topology); ok {
				text = report.Brief(v)
				if v == bottom && v != 0 {
					text = "*" + text
				}
			}
			lines[i+2] += fmt.Sprintf("%*s", len(c.head)+2, text)
		}
	}
	_, err := fmt.Fprintln(w, strings.Join(lines, "\n"))
	return err
}

// worst is the worst mean of a line, or of all if that is ""; with a topology that of the topology
// on the first network.
func worst(rows []Row, line, metric, topology string) (v float64, ok bool) {
	most := Metrics[slices.IndexFunc(Metrics, func(m Metric) bool { return m.Name == metric })].Most
	for _, r := range rows {
		if line != "" && r.Line() != line || topology != "" &&
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
