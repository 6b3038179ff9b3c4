package report

import (
	"bytes"
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
	panelRow   = 18
)

// Grid has figures by part, line and column: a picture is drawn of it.
type Grid struct {
	Parts, Lines, Columns []string
	Strong                string // a line whose name stands out
	// At returns the figure of a cell that has a name, such as a unit; false if there is none.
	At func(part, line, column, mark string) (Interval, bool)
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
	Title, Mark string
	Bad         func(v float64) float64 // how bad a value is, on the scale
	Scale       Scale
	Legend      []string // what the columns are
}

// SVG draws the picture.
func (m Heat) SVG(g Grid) []byte {
	s := &sheet{y: 30}
	s.text("title", gridLabels, s.y, m.Title, "")
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
				if e, ok := g.At(part, line, column, m.Mark); ok {
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
	s.add(`<rect class="noreign" fill-opacity="%.2f" x="%d" y="%d" width="%d" height="%d"/>`,
		0.75*m.Scale.share(m.Bad(e.Mean)), x, s.y, cellWide-1, cellHigh-1)
	s.text("tick strong", x+cellWide/2, s.y+12, Brief(e.Mean), "")
	if e.Low != e.High {
		s.add(`<text class="tick" style="font-size:8px" x="%d" y="%d">%s</text>`,
			x+cellWide/2, s.y+23, Brief(e.Low)+"-"+Brief(e.High))
	}
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

// picture is what was drawn.
func (s *sheet) picture(width int, title, about string) []byte {
	var b bytes.Buffer
	if err := s.write(&b, width, title, about); err != nil {
		panic(err) // a buffer takes all
	}
	return b.Bytes()
}

// Dots is a picture of some columns of a Grid: a panel for each, and a line in it for each line.
type Dots struct {
	Title, About string
	Panels       []Panel
}

// Panel has some figures of a column, one mark each.
type Panel struct {
	Title, Column string
	Marks         []string
	Scale         Scale
}

// dotLooks are the marks of a panel.
var dotLooks = []struct{ class, mark string }{
	{"candidate", `<circle class="candidate" cx="%d" cy="%d" r="4.5"/>`},
	{"figures", `<path class="figures" transform="translate(%d,%d)" d="M-4-4H4V4H-4z"/>`},
}

// SVG draws the picture.
func (d Dots) SVG(g Grid) []byte {
	s := &sheet{y: 30}
	s.text("title", gridLabels, s.y, d.Title, "")
	s.text("legend", gridLabels, s.y+18, d.About+" Bars are intervals of 95 %.", "")
	s.y += 24
	for _, part := range g.Parts {
		s.y += 26
		s.text("variant", gridLabels, s.y+12, part, "")
		top := s.y
		for i, p := range d.Panels {
			s.y = top
			p.draw(s, gridLeft+i*(panelWide+20), part, g)
		}
	}
	s.y += 6
	return s.picture(gridLeft+len(d.Panels)*(panelWide+20)+gridLabels, d.Title, d.About)
}

func (p Panel) draw(s *sheet, left int, part string, g Grid) {
	at := func(v float64) int { return left + 20 + int(math.Round(p.Scale.share(v)*(panelWide-40))) }
	s.text("figures", left+20, s.y-4, p.Title, "")
	bottom := s.y + 20 + len(g.Lines)*panelRow
	for v := p.Scale.Least; v < p.Scale.Most*1.5; v *= 10 {
		s.add(`<line class="grid" x1="%[1]d" y1="%[2]d" x2="%[1]d" y2="%[3]d"/>`, at(v), s.y+16, bottom)
		s.text("tick", at(v), s.y+12, Brief(v), "")
	}
	s.y += 28
	for _, line := range g.Lines {
		if left == gridLeft {
			s.text(g.labelClass(line), gridLabels, s.y+4, line, "")
		}
		for i, mark := range p.Marks {
			e, ok := g.At(part, line, p.Column, mark)
			if !ok {
				continue
			}
			look := dotLooks[i]
			s.add(`<rect class="%s" x="%d" y="%d" width="%d" height="4"/>`, look.class, at(e.Low), s.y-2,
				max(at(e.High)-at(e.Low), leastWidth))
			s.add(look.mark, at(e.Mean), s.y)
		}
		s.y += panelRow
	}
}
