package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/fatih/color"

	"github.com/bmqelect/bmqelect/internal/lab/history"
	"github.com/bmqelect/bmqelect/internal/lab/verdict"
)

// figure is one line of the comparison of runs.
type figure struct {
	name   string
	value  func(history.Summary) float64 // times are in nanoseconds; nil for times to a failover
	format func(float64) string
	worse  float64 // 1 if more is worse, -1 if less is
}

func duration(v float64) string { return seconds(time.Duration(v)) }
func whole(v float64) string    { return count(int(v)) }

// figures are ordered by harm, the worst first.
var figures = []figure{
	{"two leaders", func(s history.Summary) float64 { return float64(s.Overlap) }, duration, 1},
	{"needless demotions", func(s history.Summary) float64 { return float64(s.Demotions) }, whole, 1},
	{"time without leader", func(s history.Summary) float64 { return float64(s.Leaderless) },
		duration, 1},
	{"availability", func(s history.Summary) float64 { return s.Availability }, percent, -1},
	{"leader changes", func(s history.Summary) float64 { return float64(s.LeaderChanges) }, whole, 1},
	{"elections", func(s history.Summary) float64 { return float64(s.Elections) }, whole, 1},
	{"messages", func(s history.Summary) float64 { return float64(s.Messages) }, whole, 1},
}

// worstMark is beside the worst of what is compared, and beside any time with two leaders.
const worstMark = " !"

// row is a figure of several runs.
type row struct {
	Name  string
	Cells []cell
}

type cell struct {
	Text  string
	Worst bool
}

// tableOf are the figures of runs. Only the simulator counts messages.
func tableOf(runs []verdict.Run) (table []row) {
	var all []history.Summary
	for _, r := range runs {
		all = append(all, r.History.Summarize(0, r.History.Duration))
	}
	for i, f := range figures {
		r, harm := row{Name: f.name}, []float64{}
		for _, s := range all {
			v := f.value(s)
			harm = append(harm, v*f.worse)
			r.Cells = append(r.Cells, cell{Text: f.format(v)})
		}
		for k, v := range harm {
			r.Cells[k].Worst = i == 0 && v > 0 || v == slices.Max(harm) && v > slices.Min(harm)
		}
		if i < len(figures)-1 || len(runs) == 0 || runs[0].History.Mode == "simulated" {
			table = append(table, r)
		}
	}
	return table
}

// Columns of tables.
const (
	figureName  = 21 // of a figure's name and the space after it
	figureValue = 18 // of a run at least; its title may want more
	spreadValue = 12 // of a quantile
)

// figures writes a table with a column for each run; what does not fit the width
// goes to further tables.
func (p *printer) figures(runs []verdict.Run) {
	width, alone, table := figureValue, len(runs) == 1, tableOf(runs)
	for _, r := range runs {
		width = max(width, min(utf8.RuneCountInString(variant(r.History)), 2*figureValue)+4)
	}
	if alone {
		width = 0
	}
	per := max(1, (p.width-figureName-2)/max(width, 1))
	for first := 0; first < len(runs); first += per {
		p.line()
		head, last := strings.Repeat(" ", figureName), min(first+per, len(runs))
		for _, r := range runs[first:last] {
			head += padLeft(clip(variant(r.History), width-4), width-2) + "  "
		}
		if !alone {
			p.line("  ", p.paint(head, color.Bold))
		}
		for _, r := range table {
			line := "  " + pad(r.Name, figureName)
			for _, c := range r.Cells[first:last] {
				line += p.cell(c, width)
			}
			p.line(line)
		}
	}
	if !alone {
		p.line()
		p.line("  ! is the worst of a row, and any time with two leaders")
	}
}

// cell writes a value with its mark.
func (p *printer) cell(c cell, width int) string {
	text := fmt.Sprintf("%*s", max(width-len(worstMark), 0), c.Text)
	if c.Worst {
		return p.paint(text+worstMark, color.FgRed, color.Bold)
	}
	return text + strings.Repeat(" ", len(worstMark))
}

// Distribution writes how the figures of many runs spread: the value that half
// of the runs do not exceed, 90 %, 99 %, and the worst one. Of availability the
// low values are the bad ones: 99 % of the runs reach what is below p99. It
// returns the error of w.
func Distribution(w io.Writer, all []history.Summary, o TextOptions) error {
	p := newPrinter(w, o)
	head := pad("runs: "+count(len(all)), figureName)
	for _, name := range []string{"p50", "p90", "p99", "worst"} {
		head += padLeft(name, spreadValue)
	}
	p.line(p.paint(head, color.Bold))
	for _, f := range append([]figure{{"failover time", nil, duration, 1}}, figures...) {
		var values []float64
		for _, s := range all {
			if f.value != nil {
				values = append(values, f.value(s))
				continue
			}
			for _, d := range s.Failovers { // none or several of a run
				values = append(values, float64(d))
			}
		}
		slices.SortFunc(values, func(a, b float64) int { return cmp.Compare(a*f.worse, b*f.worse) })
		line := pad(f.name, figureName)
		for _, share := range []int{50, 90, 99, 100} {
			text := "-"
			if len(values) > 0 {
				text = f.format(percentile(values, share))
			}
			line += padLeft(text, spreadValue)
		}
		p.line(line)
	}
	return p.close()
}

// percentile is the least value that share percent of the values do not exceed
// (nearest rank). Values are sorted and not empty; share is 1 to 100.
func percentile[T any](values []T, share int) T {
	return values[(len(values)*share+99)/100-1]
}

// Summary writes one line for each run, then totals. The line of a run that held has
// its figures, that of any other the first thing that went wrong. It returns the error
// of w.
func Summary(w io.Writer, runs []verdict.Run, o TextOptions) error {
	p := newPrinter(w, o)
	width, failed := 0, 0
	for _, r := range runs {
		width = max(width, min(utf8.RuneCountInString(title(r.History)), p.width/2))
	}
	for _, r := range runs {
		if !r.Held() {
			failed++
			p.wrapped(p.tick(false), 5, title(r.History)+": "+firstFailure(r))
			continue
		}
		s, split := r.History.Summarize(0, r.History.Duration), ""
		if s.Overlap > 0 {
			split = "  two leaders " + seconds(s.Overlap) + worstMark
		}
		p.line(p.tick(true), pad(title(r.History), width), split,
			fmt.Sprintf("  leader changes %s  availability %s  max term %s",
				count(s.LeaderChanges), percent(s.Availability), count(s.MaxTerm)))
	}
	totals := fmt.Sprintf("%s of %s held", count(len(runs)-failed), count(len(runs)))
	if failed > 0 {
		totals += fmt.Sprintf(", %s failed", count(failed))
	}
	p.line(p.tick(failed == 0), totals)
	return p.close()
}

// firstFailure says in one sentence what went wrong first; invariants come
// before expectations, since these mean little without them.
func firstFailure(r verdict.Run) string {
	var all []string
	for _, p := range problemsOf(r.History) {
		line, _, _ := strings.Cut(strings.TrimSpace(p.Text), "\n")
		all = append(all, strings.TrimSuffix(p.Kind, " with the run")+": "+line)
	}
	for _, v := range r.Verdicts {
		if !v.Held {
			all = append(all, fmt.Sprintf("expected %s; %s: %s", v.Text, where(v), v.Seen))
		}
	}
	if more := len(all) - 1; more > 0 {
		return fmt.Sprintf("%s (and %s more)", all[0], count(more))
	}
	return all[0]
}
