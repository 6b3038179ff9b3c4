package report

import (
	"strings"
	"time"
	"unicode/utf8"

	"github.com/fatih/color"

	"github.com/bmqelect/bmqelect/internal/lab/history"
)

// colors are how a terminal paints each state.
var colors = [states][]color.Attribute{
	follower:  {color.FgCyan},
	alone:     {color.FgRed},
	leader:    {color.FgGreen, color.Bold},
	paused:    {color.FgBlue},
	down:      {color.Faint},
	expired:   {color.FgMagenta, color.Bold},
	candidate: {color.FgYellow, color.Bold},
}

// grid maps times to columns.
type grid struct {
	label, columns int
	end            time.Duration
}

// span returns the columns that [from, to) touches, at least one.
func (g grid) span(from, to time.Duration) (first, last int) {
	first = g.column(from)
	if to <= from {
		return first, first
	}
	return first, max(first, g.column(to-1))
}

// column is the one that a moment falls in; moments outside are at the edges.
// Computed in floating point: the product of a long run would overflow.
func (g grid) column(t time.Duration) int {
	if g.end <= 0 {
		return 0
	}
	return min(max(int(float64(t)/float64(g.end)*float64(g.columns)), 0), g.columns-1)
}

// lanes draws the nodes over time. All runs of a report share the axis.
func (p *printer) lanes(h *history.History, all []Run) {
	g := grid{label: p.labelWidth(all), end: longest(all)}
	g.columns = p.width - g.label
	p.row(g, "time", ruler(g))
	p.row(g, "marks", markRow(g, h))
	p.row(g, "cuts", cutRow(g, h))
	p.line(pad("leads", g.label), reignRow(g, h))
	terms := ""
	for i := range h.Lanes {
		l := &h.Lanes[i]
		if t := termRow(g, l); t != terms {
			p.row(g, "", terms)
			terms = t
		}
		p.line(pad(laneName(l), g.label), p.laneRow(g, l, h.Duration))
	}
	p.row(g, "", terms)
	p.legend(g, h)
}

// labelWidth is the room for names, bounded so that the lanes keep theirs.
func (p *printer) labelWidth(runs []Run) int {
	w := len("leads")
	for _, r := range runs {
		for i := range r.History.Lanes {
			w = max(w, utf8.RuneCountInString(laneName(&r.History.Lanes[i])))
		}
	}
	return min(w, p.width/4) + 2
}

// laneName is the node's name; observers and those that never stand are marked.
func laneName(l *history.Lane) string {
	name := plain(string(l.Node))
	switch {
	case !l.Voter:
		return name + " (observer)"
	case !l.Candidate:
		return name + " (votes only)"
	}
	return name
}

// row writes a faint row unless it is empty.
func (p *printer) row(g grid, label, cells string) {
	if strings.TrimSpace(cells) != "" {
		p.line(p.paint(pad(label, g.label)+strings.TrimRight(cells, " "), color.Faint))
	}
}

// laneRow is one lane, each column with the state least to be overlooked.
func (p *printer) laneRow(g grid, l *history.Lane, end time.Duration) string {
	cells := laneCells(g, l, end)
	var b strings.Builder
	for from, to := 0, 0; from < len(cells); from = to {
		c := cells[from]
		for to = from; to < len(cells) && cells[to] == c; to++ {
		}
		b.WriteString(p.paint(strings.Repeat(string(c.letter()), to-from), c.colors()...))
	}
	return b.String()
}

// cell is one column of a lane.
type cell struct {
	state state
	drawn bool
	busy  bool
}

// crowd is how many stretches make a column busy: no one of them stands for all.
// An election (follower, alone, candidate, leader) is less than that.
const crowd = 6

// busyLetter marks a column in which a node changes faster than columns go by.
const busyLetter = '*'

// laneCells fills the columns. One in which a node becomes leader again is busy
// too: that is the ping-pong which people look for.
func laneCells(g grid, l *history.Lane, end time.Duration) []cell {
	cells, in, reigns := make([]cell, g.columns), make([]int, g.columns), make([]int, g.columns)
	for _, s := range stretches(pieces(l, end)) {
		first, last := g.span(s.From, s.To)
		for c := first; c <= last; c++ {
			in[c]++
			if s.state == leader {
				reigns[c]++
			}
			cells[c] = cell{state: max(cells[c].state, s.state), drawn: true, busy: in[c] >= crowd || reigns[c] > 1}
		}
	}
	return cells
}

func (c cell) letter() rune {
	switch {
	case !c.drawn:
		return ' '
	case c.busy:
		return busyLetter
	}
	return looks[c.state].letter
}

func (c cell) colors() []color.Attribute {
	if !c.drawn || c.busy {
		return nil
	}
	return colors[c.state]
}

// legend explains the letters that occur.
func (p *printer) legend(g grid, h *history.History) {
	occurs := map[rune]bool{}
	for i := range h.Lanes {
		for _, c := range laneCells(g, &h.Lanes[i], h.Duration) {
			occurs[c.letter()] = true
		}
	}
	var known []string
	explain := func(letter rune, name string) {
		if occurs[letter] {
			known = append(known, string(letter)+"\u00a0"+strings.ReplaceAll(name, " ", "\u00a0"))
		}
	}
	for _, s := range legend {
		explain(looks[s].letter, looks[s].name)
	}
	explain(busyLetter, "changes too fast to draw")
	for _, l := range wrap(strings.Join(known, ", "), p.width) {
		p.line(p.paint(strings.ReplaceAll(l, "\u00a0", " "), color.Faint))
	}
}
