package report

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// CurvesPlot is a picture of curves, and of what was measured beside them.
type CurvesPlot struct {
	Title, About string // About is for those who cannot see it
	X, Y         Axis
	Series       []Series
}

// Axis goes from its first tick to its last one.
type Axis struct {
	Label string
	Ticks []float64 // rising; above 0 if Log
	Log   bool
}

// Series is a curve, what was measured of the same, or both. They have one name, at their end.
type Series struct {
	Label        string
	Curve, Marks []Point // in the order of X
}

// Point is a place in a plot, and the interval that its Y is in; of a curve, it has none.
type Point struct{ X, Y, Low, High float64 }

// Sizes of a plot in pixels.
const (
	curvesLeft   = 56
	curvesRight  = 386 // where names of curves begin
	curvesHeight = 380
	curvesLine   = 14 // from one name to the next
	titleLetter  = 10 // at most, on the mean
)

// SVG draws the plot.
func (p CurvesPlot) SVG() []byte {
	s := &sheet{y: 26}
	s.text("title", margin, s.y, p.Title, "")
	s.text("legend", margin, s.y+20, p.Y.Label, "")
	top := s.y + 36
	bottom := top + curvesHeight
	x := func(v float64) int { return p.X.place(v, curvesLeft, curvesRight-10) }
	y := func(v float64) int { return p.Y.place(v, bottom, top) }
	for _, t := range p.X.Ticks {
		s.add(`<line class="grid" x1="%[1]d" y1="%[2]d" x2="%[1]d" y2="%[3]d"/>`, x(t), top, bottom)
		s.text("tick", x(t), bottom+16, plotNumber(t), "")
	}
	for _, t := range p.Y.Ticks {
		s.add(`<line class="grid" x1="%d" y1="%[2]d" x2="%d" y2="%[2]d"/>`, curvesLeft, y(t),
			curvesRight-10)
		s.text("tick", curvesLeft-26, y(t)+4, plotNumber(t), "")
	}
	s.text("tick", (curvesLeft+curvesRight)/2, bottom+32, p.X.Label, "")
	width, names := margin+len(p.Title)*titleLetter, p.names(y)
	for i, series := range p.Series {
		series.draw(s, i, x, y)
		at := names[i]
		if len(series.Marks) > 0 {
			s.add(rowsLooks[i%len(rowsLooks)].mark, curvesRight+4, at-4)
		} else {
			s.add(`<line class="mark" x1="%d" y1="%[2]d" x2="%d" y2="%[2]d"/>`, curvesRight-2, at-4,
				curvesRight+10)
		}
		s.text("legend", curvesRight+14, at, series.Label, "")
		width = max(width, curvesRight+20+len(series.Label)*letterWidth)
	}
	s.y = bottom + 36
	return s.picture(width, p.Title, p.About)
}

// names places the names of series beside their ends, none on another.
func (p CurvesPlot) names(y func(float64) int) (at []int) {
	order := make([]int, len(p.Series))
	for i, series := range p.Series {
		points := append(slices.Clone(series.Curve), series.Marks...)
		order[i] = i
		at = append(at, y(points[len(points)-1].Y)+4)
	}
	slices.SortStableFunc(order, func(a, b int) int { return at[a] - at[b] })
	for k := range order[1:] {
		at[order[k+1]] = max(at[order[k+1]], at[order[k]]+curvesLine)
	}
	return at
}

func (series Series) draw(s *sheet, i int, x, y func(float64) int) {
	var line []string
	for _, at := range series.Curve {
		line = append(line, strconv.Itoa(x(at.X))+","+strconv.Itoa(y(at.Y)))
	}
	if line != nil {
		s.add(`<polyline class="mark" fill="none" points="%s"/>`, strings.Join(line, " "))
	}
	look := rowsLooks[i%len(rowsLooks)]
	for _, at := range series.Marks {
		if at.Low != at.High {
			s.add(`<rect class="%s" x="%d" y="%d" width="2" height="%d"/>`, look.class, x(at.X)-1,
				y(at.High), y(at.Low)-y(at.High))
		}
		s.add(look.mark, x(at.X), y(at.Y))
	}
}

// place is where a value is between two pixels.
func (a Axis) place(v float64, from, to int) int {
	first, last := a.Ticks[0], a.Ticks[len(a.Ticks)-1]
	if a.Log {
		v, first, last = math.Log(v), math.Log(first), math.Log(last)
	}
	return from + int(math.Round((v-first)/(last-first)*float64(to-from)))
}

func plotNumber(v float64) string {
	unit := ""
	if v >= 1e6 {
		v, unit = v/1e6, " M"
	}
	return strconv.FormatFloat(v, 'f', -1, 64) + unit
}
