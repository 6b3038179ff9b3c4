package report

import (
	"slices"
	"strings"

	"github.com/bmqelect/bmqelect/internal/lab/history"
	"github.com/bmqelect/bmqelect/lsn"
)

// canvas is a row of characters to be filled.
type canvas []rune

func newCanvas(columns int) canvas { return canvas(strings.Repeat(" ", columns)) }

// put writes text at a column, cut off at limit.
func (c canvas) put(column, limit int, text string) {
	for _, r := range text {
		if column >= min(limit, len(c)) {
			return
		}
		c[column] = r
		column++
	}
}

// ruler is the axis of time: a bar at the column of each labeled time.
func ruler(g grid) string {
	row := newCanvas(g.columns)
	at := ticks(g.end, max(g.columns/10, 2))
	for i, t := range at {
		column, limit := g.column(t), g.columns
		if i+1 < len(at) {
			limit = g.column(at[i+1])
		}
		row.put(column, limit, "|")
		if label := tickLabel(t); column+1+len(label) <= limit {
			row.put(column+1, limit, label)
		}
	}
	return string(row)
}

// markRow shows where the timeline did something.
func markRow(g grid, h *history.History) string {
	row := newCanvas(g.columns)
	for _, m := range h.Marks {
		row[g.column(m.At)] = '^'
	}
	return string(row)
}

// cutRow shows how many directions are cut; + is ten or more.
func cutRow(g grid, h *history.History) string {
	cut := make([]int, g.columns)
	for _, c := range h.Cuts {
		first, last := g.span(max(c.Start, 0), min(c.End, h.Duration))
		for i := first; i <= last; i++ {
			cut[i]++
		}
	}
	row := newCanvas(g.columns)
	for i, n := range cut {
		if n > 0 {
			row[i] = []rune("123456789+")[min(n, 10)-1]
		}
	}
	return string(row)
}

// reignRow names who leads, and has dots where nobody does, however shortly. A
// name stands at the first column that is the leader's alone.
func reignRow(g grid, h *history.History) string {
	row := newCanvas(g.columns)
	reigns := h.Reigns(0, h.Duration)
	for _, r := range reigns {
		if first, last := g.span(r.From, r.To); r.Leader != "" {
			row.put(first, last+1, strings.Repeat("=", last+1-first))
		}
	}
	for _, r := range reigns {
		if first, last := g.span(r.From, r.To); r.Leader == "" {
			row.put(first, last+1, strings.Repeat(".", last+1-first))
		}
	}
	for _, r := range reigns {
		first, last := g.span(r.From, r.To)
		if at := slices.Index(row[first:last+1], '='); at >= 0 && r.Leader != "" {
			row.put(first+at, first+at+row.stretch(first+at, last), plain(string(r.Leader)))
		}
	}
	return string(row)
}

// stretch is how many columns from first to last have the same character as first.
func (c canvas) stretch(first, last int) int {
	n := 1
	for first+n <= last && c[first+n] == c[first] {
		n++
	}
	return n
}

// termRow writes a lane's term where it changes, or as soon as there is room:
// it is the term in effect at the end of the column that it starts in.
func termRow(g grid, l *history.Lane) string {
	row, shown, free := newCanvas(g.columns), lsn.Term(0), 0
	for c, term := range termsByColumn(g, l) {
		label := term.String()
		if term == shown || c < free || c+len(label) > g.columns {
			continue
		}
		row.put(c, g.columns, label)
		shown, free = term, c+len(label)+1
	}
	return string(row)
}

// termsByColumn is the term at the end of each column; 0 where there is none.
func termsByColumn(g grid, l *history.Lane) []lsn.Term {
	terms := make([]lsn.Term, g.columns)
	for _, s := range l.Spans {
		if s.To <= 0 || s.From >= g.end || s.Process == history.Down {
			continue
		}
		first, last := g.span(max(s.From, 0), min(s.To, g.end))
		for c := first; c <= last; c++ {
			terms[c] = s.Term
		}
	}
	// A node that is down keeps the term that it had.
	for c := 1; c < len(terms); c++ {
		if terms[c] == 0 {
			terms[c] = terms[c-1]
		}
	}
	return terms
}
