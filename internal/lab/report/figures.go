package report

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/fatih/color"

	"github.com/bmqelect/bmqelect/internal/lab/history"
)

// figure is one line of the comparison of runs.
type figure struct {
	name  string
	value func(history.Summary) string
}

var figures = []figure{
	{"leader changes", func(s history.Summary) string { return count(s.LeaderChanges) }},
	{"needless demotions", func(s history.Summary) string { return count(s.Demotions) }},
	{"time without leader", func(s history.Summary) string { return seconds(s.Leaderless) }},
	{"availability", func(s history.Summary) string { return percent(s.Availability) }},
	{"highest term", func(s history.Summary) string { return count(s.MaxTerm) }},
	{"messages", func(s history.Summary) string { return count(s.Messages) }},
}

const (
	figureName  = 21 // columns of a figure's name and the space after it
	figureValue = 18 // least columns of a value; the title of the run may want more
)

// figures writes a table with a column for each run; what does not fit the width
// goes to further tables.
func (p *printer) figures(runs []Run) {
	width := figureValue
	for _, r := range runs {
		width = max(width, min(utf8.RuneCountInString(r.variant()), 2*figureValue)+2)
	}
	if len(runs) == 1 {
		width = 0
	}
	for group := range slices.Chunk(runs, max(1, (p.width-figureName-2)/max(width, 1))) {
		p.line()
		p.figureTable(group, width)
	}
}

func (p *printer) figureTable(runs []Run, width int) {
	if len(runs) > 1 || width > 0 {
		head := strings.Repeat(" ", figureName)
		for _, r := range runs {
			head += padLeft(clip(plain(r.variant()), width-2), width)
		}
		p.line("  ", p.paint(head, color.Bold))
	}
	all := make([]history.Summary, len(runs))
	for i, r := range runs {
		all[i] = r.summary()
	}
	for _, f := range figures {
		line := "  " + pad(f.name, figureName)
		for _, s := range all {
			line += padLeft(f.value(s), max(width, len(f.value(s))))
		}
		p.line(line)
	}
}
