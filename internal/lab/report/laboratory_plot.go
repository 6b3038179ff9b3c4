package report

import (
	"math"
	"strconv"
	"strings"
)

// Sizes of the pictures of a Grid.
const (
	gridLabels = 12
	gridLeft   = 190 // where cells begin
	cellWide   = 62
	cellHigh   = 28
	panelWide  = 360
	panelRow   = 24
)

// Grid has figures by part, line and column: a picture is drawn of it.
type Grid struct {
	Parts, Lines, Columns []string
	Strong                string // a line whose name stands out
	// At returns a figure of a cell by its name; false if there is none.
	At func(part, line, column, figure string) (Interval, bool)
}

// Interval is a mean and its interval of 95 %.
type Interval struct{ Mean, Low, High float64 }

// Scale is logarithmic from one value to another.
type Scale struct{ Least, Most float64 }

// share is where a value is on the scale, from 0 to 1.
func (s Scale) share(v float64) float64 {
	if v <= s.Least {
		return 0
	}
	return min(math.Log(v/s.Least)/math.Log(s.Most/s.Least), 1)
}

// Heat is a picture of one figure in all cells of a Grid, the deeper red the worse.
type Heat struct {
	Title, Figure string
	Best, Most    float64  // the best value, and how far from it the deepest red is
	Legend        []string // what the columns are
}

// leastBad is how far from the best the first red is.
const leastBad = 0.1

func (m Heat) bad(v float64) float64 { return math.Abs(m.Best - v) }

// SVG draws the picture.
func (m Heat) SVG(g Grid) []byte {
	s := &sheet{y: 30}
	s.text("title", gridLabels, s.y, m.Title, "")
	s.y += 18
	s.text("legend", gridLabels, s.y, "A mean, and below it its interval of 95 %.", "")
	for i, v := 0, leastBad; v <= m.Most*1.01; i, v = i+1, v*10 {
		x := gridLeft + 120 + i*2*cellWide
		m.fill(s, x, s.y-10, 14, v)
		s.text("legend", x+19, s.y, Brief(m.bad(v)), "")
	}
	for _, part := range g.Parts {
		s.y += 34
		s.text("variant", gridLabels, s.y+12, part, "")
		for i, column := range g.Columns {
			for k, word := range strings.SplitAfterN(column, "-", 2) {
				s.text("tick", gridLeft+i*cellWide+cellWide/2, s.y+12*k, word, "")
			}
		}
		s.y += 18
		for _, line := range g.Lines {
			s.text(g.labelClass(line), gridLabels, s.y+18, line, "")
			for i, column := range g.Columns {
				if e, ok := g.At(part, line, column, m.Figure); ok {
					m.cell(s, gridLeft+i*cellWide, e)
				}
			}
			s.y += cellHigh
		}
	}
	s.y += 8
	for i, line := range m.Legend {
		s.text("legend", gridLabels+i%2*panelWide*3/2, s.y+16*(i/2+1), line, "")
	}
	s.y += 16 * (len(m.Legend) + 1) / 2
	return s.picture(gridLeft+len(g.Columns)*cellWide+gridLabels, m.Title, "A line for each "+
		"algorithm, a column for each topology, a part for each network. The deeper the red, the "+
		"worse. Below each mean, its interval of 95 %.")
}

func (g *Grid) labelClass(line string) string {
	if line == g.Strong {
		return "node strong"
	}
	return "node"
}

func (m Heat) cell(s *sheet, x int, e Interval) {
	m.fill(s, x, s.y, cellWide-1, m.bad(e.Mean))
	write := func(y, size int, text string) {
		s.add(`<text style="text-anchor:middle;font-size:%dpx" x="%d" y="%d">%s</text>`, size,
			x+cellWide/2, y, text)
	}
	write(s.y+12, 11, Brief(e.Mean))
	if e.Low != e.High {
		write(s.y+23, 9, Brief(e.Low)+"-"+Brief(e.High))
	}
}

func (m Heat) fill(s *sheet, x, y, width int, bad float64) {
	s.add(`<rect class="noreign" fill-opacity="%.2f" x="%d" y="%d" width="%d" height="%d"/>`,
		0.6*Scale{leastBad, m.Most}.share(bad), x, y, width, min(width, cellHigh-1))
}

// Brief is a figure with at most three digits, except that all before the point stay.
func Brief(v float64) string {
	digits := 0
	switch {
	case v >= 99.5 && v < 100: // no availability is rounded up to 100 %
		return strconv.FormatFloat(math.Floor(v*100)/100, 'f', -1, 64)
	case v < 0.9995:
		digits = 3
	case v < 9.995:
		digits = 2
	case v < 99.95:
		digits = 1
	}
	text := strconv.FormatFloat(v, 'f', digits, 64)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}

// Dots is a picture of some columns of a Grid: a panel for each, and a line in it for each line.
type Dots struct {
	Title  string
	Marks  []string // what the marks are, at most as many as dotLooks
	Panels []Panel
}

// Panel has some figures of a column, one for each mark. Its scale fits them.
type Panel struct {
	Title, Unit, Column string
	Figures             []string
}

// dotLooks are the marks: to be drawn at a place, with a bar in their color. They are one below
// the other.
var dotLooks = []struct{ class, mark string }{
	{"candidate", `<circle class="candidate" cx="%d" cy="%d" r="4"/>`},
	{"figures", `<path class="figures" transform="translate(%d,%d)" d="M-3.5-3.5H3.5V3.5H-3.5z"/>`},
	{"leader", `<path class="leader" transform="translate(%d,%d)" d="M0-5L5 0L0 5L-5 0z"/>`},
}

// SVG draws the picture.
func (d Dots) SVG(g Grid) []byte {
	s := &sheet{y: 30}
	s.text("title", gridLabels, s.y, d.Title, "")
	s.y += 20
	x := gridLabels
	for i, name := range append(d.Marks, "bars: intervals of 95 %") {
		if i < len(d.Marks) {
			s.add(dotLooks[i].mark, x+5, s.y-4)
		}
		s.text("legend", x+14, s.y, name, "")
		x += 30 + len(name)*letterWidth
	}
	for _, part := range g.Parts {
		s.y += 30
		s.text("variant", gridLabels, s.y+12, part, "")
		top := s.y
		for i, p := range d.Panels {
			s.y = top
			p.draw(s, gridLeft+i*(panelWide+20), part, g)
		}
	}
	s.y += 6
	return s.picture(gridLeft+len(d.Panels)*(panelWide+20)+gridLabels, d.Title,
		"A line for each algorithm. "+strings.Join(d.Marks, ". ")+". Bars are intervals of 95 %.")
}

// scale goes over whole powers of ten from the least figure above 0 of all parts to the greatest.
func (p Panel) scale(g Grid) Scale {
	s := Scale{math.Inf(1), 0}
	for _, part := range g.Parts {
		for _, line := range g.Lines {
			for _, figure := range p.Figures {
				if e, ok := g.At(part, line, p.Column, figure); ok && e.Mean > 0 {
					s.Least, s.Most = min(s.Least, max(e.Low, e.Mean/10)), max(s.Most, e.High)
				}
			}
		}
	}
	power := func(v float64, round func(float64) float64) float64 {
		return math.Pow(10, round(math.Log10(v)))
	}
	return Scale{power(s.Least, math.Floor), power(s.Most*1.001, math.Ceil)}
}

func (p Panel) draw(s *sheet, left int, part string, g Grid) {
	scale := p.scale(g)
	at := func(v float64) int { return left + 20 + int(math.Round(scale.share(v)*(panelWide-40))) }
	s.text("figures", left+20, s.y-4, p.Title+", "+p.Unit, "")
	bottom := s.y + 22 + len(g.Lines)*panelRow
	for v := scale.Least; v < scale.Most*1.5; v *= 10 {
		s.add(`<line class="grid" x1="%[1]d" y1="%[2]d" x2="%[1]d" y2="%[3]d"/>`, at(v), s.y+16, bottom)
		s.text("tick", at(v), s.y+12, Brief(v), "")
	}
	s.y += 30
	for _, line := range g.Lines {
		if left == gridLeft {
			s.text(g.labelClass(line), gridLabels, s.y+4, line, "")
		}
		for i, figure := range p.Figures {
			if e, ok := g.At(part, line, p.Column, figure); ok {
				y := s.y + 5*i - 5*(len(p.Figures)-1)/2
				s.add(`<rect class="%s" x="%d" y="%d" width="%d" height="2"/>`, dotLooks[i].class, at(e.Low),
					y-1, max(at(e.High)-at(e.Low), leastWidth))
				s.add(dotLooks[i].mark, at(e.Mean), y)
			}
		}
		s.y += panelRow
	}
}
