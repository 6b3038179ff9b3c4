package report

import (
	"bytes"
	"math"
	"strconv"
	"strings"
)

// Plot is a picture of published curves and of what was measured beside them.
type Plot struct {
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

// Series is one curve and what was measured of the same. They have one label, at the end of the
// curve.
type Series struct {
	Label string
	Curve []Point // published; in the order of X
	Marks []Point // measured
}

// Point is a place in a plot.
type Point struct{ X, Y float64 }

// Sizes of a plot in pixels.
const (
	curvesWidth  = 640
	curvesLeft   = 56
	curvesRight  = 420 // where labels of curves begin
	curvesHeight = 380
)

// curveMarks are the looks of what was measured, of one series after the other.
var curveMarks = []string{
	`<circle class="candidate" cx="%d" cy="%d" r="4"/>`,
	`<path class="figures" transform="translate(%d,%d)" d="M-4-4H4V4H-4z"/>`,
	`<path class="leader" transform="translate(%d,%d)" d="M0-5.5L5.5 0L0 5.5L-5.5 0z"/>`,
}

// SVG draws the plot.
func (p Plot) SVG() []byte {
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
		s.text("tick", curvesLeft-22, y(t)+4, plotNumber(t), "")
	}
	s.text("tick", (curvesLeft+curvesRight)/2, bottom+32, p.X.Label, "")
	for i, series := range p.Series {
		var line []string
		for _, at := range series.Curve {
			line = append(line, strconv.Itoa(x(at.X))+","+strconv.Itoa(y(at.Y)))
		}
		s.add(`<polyline class="mark" fill="none" points="%s"/>`, strings.Join(line, " "))
		for _, at := range series.Marks {
			s.add(curveMarks[i%len(curveMarks)], x(at.X), y(at.Y))
		}
		last := series.Curve[len(series.Curve)-1]
		s.text("legend", curvesRight, y(last.Y)+4, series.Label, "")
	}
	s.y = bottom + 36
	var b bytes.Buffer
	if err := s.write(&b, curvesWidth, p.Title, p.About); err != nil {
		panic(err) // a buffer takes all
	}
	return b.Bytes()
}

// place is where a value is between two pixels.
func (a Axis) place(v float64, from, to int) int {
	first, last := a.Ticks[0], a.Ticks[len(a.Ticks)-1]
	if a.Log {
		v, first, last = math.Log(v), math.Log(first), math.Log(last)
	}
	return from + int(math.Round((v-first)/(last-first)*float64(to-from)))
}

func plotNumber(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
