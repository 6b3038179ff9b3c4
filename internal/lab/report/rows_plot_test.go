package report

import (
	"math"
	"slices"
	"strconv"
)

// RowsPlot is a picture of a study: lines of figures, one below the other, and an axis for each
// kind of figure.
type RowsPlot struct {
	Title, About string
	Labels       int // how wide the names of rows are
	Axes         []RowsAxis
	Series       []string
	Bound        string // what the lines through rows are
	// Lines are those of a file: group, row, figure, series, value, low and high. An infinite
	// value never ended.
	Lines [][]string
}

// RowsAxis is that of a figure.
type RowsAxis struct {
	Axis
	Figure string
	Width  int
	Beyond string // what an infinite value is called
	// Bounds are drawn through the rows whose name and group they have.
	Bounds []RowsBound
}

// RowsBound is a limit of a row.
type RowsBound struct {
	Group, Row string // whose names begin so
	At         float64
}

// rowsLooks are the marks of the series.
var rowsLooks = []struct{ class, mark string }{
	{"figures", `<path class="figures" transform="translate(%d,%d)" d="M-4-4H4V4H-4z"/>`},
	{"leader", `<path class="leader" transform="translate(%d,%d)" d="M0-5.5L5.5 0L0 5.5L-5.5 0z"/>`},
	{"candidate", `<circle class="candidate" cx="%d" cy="%d" r="4.5"/>`},
	{"noreign", `<path class="noreign" transform="translate(%d,%d)" d="M-5 4H5L0-5z"/>`},
}

const (
	rowsLeft = 12
	rowsHigh = 10 // of each series of a row
	rowsGap  = 26 // between axes
)

// SVG draws the picture.
func (p RowsPlot) SVG() []byte {
	s := &sheet{y: 46}
	s.text("title", rowsLeft, 26, p.Title, "")
	x := rowsLeft + 5
	for i, name := range p.Series {
		s.add(rowsLooks[i].mark, x, s.y)
		s.text("legend", x+10, s.y+4, name, "")
		x += 26 + len(name)*letterWidth
	}
	if p.Bound != "" {
		s.add(`<line class="mark" x1="%[1]d" y1="%[2]d" x2="%[1]d" y2="%[3]d"/>`, x, s.y-7, s.y+7)
		s.text("legend", x+8, s.y+4, p.Bound, "")
	}
	s.y += 18
	for lines := range slices.Values(chunk(p.Lines, 0)) {
		p.group(s, lines)
	}
	width := rowsLeft + p.Labels + rowsGap/2
	for _, a := range p.Axes {
		width += a.Width + rowsGap
	}
	return s.picture(width, p.Title, p.About)
}

// chunk cuts lines where a column changes.
func chunk(lines [][]string, column int) (parts [][][]string) {
	for i, line := range lines {
		if i == 0 || line[column] != lines[i-1][column] {
			parts = append(parts, nil)
		}
		parts[len(parts)-1] = append(parts[len(parts)-1], line)
	}
	return parts
}

func (p RowsPlot) group(s *sheet, lines [][]string) {
	rows := chunk(lines, 1)
	s.text("variant", rowsLeft, s.y+12, lines[0][0], "")
	top, height := s.y+50, 6
	for _, row := range rows {
		height += p.height(row)
	}
	left := rowsLeft + p.Labels
	for _, a := range p.Axes {
		if slices.ContainsFunc(lines, func(l []string) bool { return l[2] == a.Figure }) {
			s.text("figures", left, s.y+28, a.Label, "")
			for _, t := range a.Ticks {
				at := a.place(t, left, left+a.room())
				s.add(`<line class="grid" x1="%[1]d" y1="%[2]d" x2="%[1]d" y2="%[3]d"/>`, at, top, top+height)
				s.text("tick", at, top-4, plotNumber(t), "")
			}
		}
		left += a.Width + rowsGap
	}
	s.y = top + 8
	for _, row := range rows {
		p.row(s, row)
	}
	s.y += 8
}

func (p RowsPlot) height(row [][]string) int {
	most := 0
	for i := range p.Series {
		for _, line := range row {
			if line[3] == p.Series[i] {
				most++
				break
			}
		}
	}
	return most*rowsHigh + 6
}

func (p RowsPlot) row(s *sheet, lines [][]string) {
	high := p.height(lines)
	s.text("node", rowsLeft, s.y+high/2-1, lines[0][1], "")
	y := s.y + 2
	for i, series := range p.Series {
		drawn, left := false, rowsLeft+p.Labels
		for _, a := range p.Axes {
			for _, line := range lines {
				if line[2] == a.Figure && line[3] == series {
					a.mark(s, i, left, y, line)
					drawn = true
				}
			}
			left += a.Width + rowsGap
		}
		if drawn {
			y += rowsHigh
		}
	}
	left := rowsLeft + p.Labels
	for _, a := range p.Axes {
		for _, b := range a.Bounds {
			if prefixed(lines[0][0], b.Group) && prefixed(lines[0][1], b.Row) {
				s.add(`<line class="mark" x1="%[1]d" y1="%[2]d" x2="%[1]d" y2="%[3]d"/>`,
					a.place(b.At, left, left+a.room()), s.y-4, s.y+high-4)
			}
		}
		left += a.Width + rowsGap
	}
	s.y += high
}

func prefixed(name, by string) bool { return len(name) >= len(by) && name[:len(by)] == by }

// room is how wide the axis itself is: what is beyond it comes after a gap.
func (a RowsAxis) room() int {
	if a.Beyond == "" {
		return a.Width
	}
	return a.Width - 16 - len(a.Beyond)*letterWidth
}

// mark draws a value and its interval; what is beyond the axis as an arrow.
func (a RowsAxis) mark(s *sheet, look, left, y int, line []string) {
	value, low, high := rowsNumber(line[4]), rowsNumber(line[5]), rowsNumber(line[6])
	at := func(v float64) int {
		return a.place(min(max(v, a.Ticks[0]), a.Ticks[len(a.Ticks)-1]), left, left+a.room())
	}
	class := rowsLooks[look].class
	if value > a.Ticks[len(a.Ticks)-1] {
		text := a.Beyond
		if !math.IsInf(value, 1) {
			text = Brief(value)
		}
		x := left + a.room() + 6
		s.add(`<path class="%s" transform="translate(%d,%d)" d="M0-4L8 0L0 4z"/>`, class, x, y)
		s.text("legend", x+12, y+4, text, "")
		return
	}
	s.add(`<rect class="%s" x="%d" y="%d" width="%d" height="4"/>`, class, at(low), y-2,
		at(high)-at(low))
	s.add(rowsLooks[look].mark, at(value), y)
}

func rowsNumber(field string) float64 {
	v, err := strconv.ParseFloat(field, 64)
	if err != nil {
		panic(err)
	}
	return v
}
