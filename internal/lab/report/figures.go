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
	name  string
	value func(history.Summary) string
}

const twoLeaders = "two leaders"

// figures are ordered by harm, the worst first.
var figures = []figure{
	{twoLeaders, func(s history.Summary) string { return seconds(s.Overlap) }},
	{"time without leader", func(s history.Summary) string { return seconds(s.Leaderless) }},
	{"availability", func(s history.Summary) string { return percent(s.Availability) }},
	{"needless demotions", func(s history.Summary) string { return count(s.Demotions) }},
	{"leader changes", func(s history.Summary) string { return count(s.LeaderChanges) }},
	{"highest term", func(s history.Summary) string { return count(s.MaxTerm) }},
	{"messages", func(s history.Summary) string { return count(s.Messages) }},
}

// figuresOf are the figures of a run like this one. Only the simulator counts messages.
func figuresOf(h *history.History) []figure {
	if h != nil && h.Mode != "simulated" {
		return figures[:len(figures)-1]
	}
	return figures
}

// Columns of tables.
const (
	figureName  = 21 // of a figure's name and the space after it
	figureValue = 18 // of a run at least; its title may want more
	spreadValue = 12 // of a quantile
)

// summarize is the whole run in figures.
func summarize(h *history.History) history.Summary { return h.Summarize(0, h.Duration) }

// figures writes a table with a column for each run; what does not fit the width
// goes to further tables.
func (p *printer) figures(runs []verdict.Run) {
	width, alone := figureValue, len(runs) == 1
	figures := figuresOf(runs[0].History)
	for _, r := range runs {
		width = max(width, min(utf8.RuneCountInString(variant(r.History)), 2*figureValue)+2)
	}
	for group := range slices.Chunk(runs, max(1, (p.width-figureName-2)/width)) {
		p.line()
		head := strings.Repeat(" ", figureName)
		lines := make([]string, len(figures))
		for _, r := range group {
			head += padLeft(clip(variant(r.History), width-2), width)
			for i, f := range figures {
				value := f.value(summarize(r.History))
				if !alone {
					value = padLeft(value, width)
				}
				lines[i] += value
			}
		}
		if !alone {
			p.line("  ", p.paint(head, color.Bold))
		}
		for i, f := range figures {
			p.line("  ", pad(f.name, figureName), lines[i])
		}
	}
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
	var failovers, leaderless []time.Duration
	var lost []float64
	var changes, demotions, messages []int
	for _, s := range all {
		failovers = append(failovers, s.Failovers...)
		leaderless = append(leaderless, s.Leaderless)
		lost = append(lost, -s.Availability)
		changes = append(changes, s.LeaderChanges)
		demotions = append(demotions, s.Demotions)
		messages = append(messages, s.Messages)
	}
	spread(p, "failover time", failovers, seconds)
	spread(p, "time without leader", leaderless, seconds)
	spread(p, "availability", lost, func(f float64) string { return percent(-f) })
	spread(p, "leader changes", changes, count)
	spread(p, "needless demotions", demotions, count)
	spread(p, "messages", messages, count)
	return p.close()
}

// spread writes the 50th, 90th and 99th percentile and the maximum of a figure;
// dashes if there are no values.
func spread[T cmp.Ordered](p *printer, name string, values []T, format func(T) string) {
	slices.Sort(values)
	line := pad(name, figureName)
	for _, share := range []int{50, 90, 99, 100} {
		text := "-"
		if len(values) > 0 {
			text = format(percentile(values, share))
		}
		line += padLeft(text, spreadValue)
	}
	p.line(line)
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
		s := summarize(r.History)
		p.line(p.tick(true), pad(title(r.History), width),
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
