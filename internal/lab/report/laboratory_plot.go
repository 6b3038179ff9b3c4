package report

import (
	"bytes"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/bmqelect/bmqelect/internal/lab/algorithm/ours"
	"github.com/bmqelect/bmqelect/internal/lab/compare"
)

// Sizes of the laboratory's pictures.
const (
	labLabels = 12
	labLeft   = 190 // where cells begin
	cellWide  = 62
	cellHigh  = 28
	panelWide = 360
	panelRow  = 18
)

// scale is logarithmic from one value to another.
type scale struct{ least, most float64 }

// share is where a value is on the scale, from 0 to 1.
func (s scale) share(v float64) float64 {
	if v <= s.least {
		return 0
	}
	return min(math.Log(v/s.least)/math.Log(s.most/s.least), 1)
}

// matrix is a picture of one metric: a line for each algorithm, a column for each topology,
// and a part for each network.
type matrix struct {
	metric, title string
	bad           func(v float64) float64 // how bad a value is, on the scale
	scale         scale
}

func same(v float64) float64 { return v }

var matrices = []matrix{
	{"availability", "Availability, %", func(v float64) float64 { return 100 - v }, scale{0.1, 100}},
	{"recovery_s", "Time without a leader until the repair, s", same, scale{0.1, 40}},
	{"demotions_per_hour", "Leaders that were well and were deposed, an hour", same, scale{0.1, 1000}},
	{"overlap_s", "Time with two leaders, s", same, scale{0.1, 60}},
}

// LaboratoryPlots draws what package compare found: pictures by the names of their files.
// Legend says what the topologies are.
func LaboratoryPlots(rows []compare.Row, legend []string) map[string][]byte {
	files := map[string][]byte{}
	for _, m := range matrices {
		name, _, _ := strings.Cut(m.metric, "_")
		files["laboratory-"+name+".svg"] = m.draw(rows, legend)
	}
	files["laboratory-crash.svg"] = crashes.draw(rows)
	files["laboratory-cost.svg"] = costs.draw(rows)
	return files
}

func (m matrix) draw(rows []compare.Row, legend []string) []byte {
	s := &sheet{y: 30}
	topologies := compare.Names(rows, func(r compare.Row) string { return r.Topology })
	s.text("title", labLabels, s.y, m.title, "")
	for _, network := range compare.Names(rows, func(r compare.Row) string { return r.Network }) {
		s.y += 34
		s.text("variant", labLabels, s.y+12, network, "")
		for i, t := range topologies {
			for k, part := range strings.SplitAfterN(t, "-", 2) {
				s.text("tick", labLeft+i*cellWide+cellWide/2, s.y+12*k, part, "")
			}
		}
		s.y += 18
		algorithm := ""
		for _, r := range rows {
			if r.Network != network || r.Topology != topologies[0] {
				continue
			}
			algorithm = r.Algorithm
			s.text(labelClass(algorithm), labLabels, s.y+18, algorithm, "")
			for i, t := range topologies {
				cell := slices.IndexFunc(rows, func(r compare.Row) bool {
					return r.Network == network && r.Topology == t && r.Algorithm == algorithm
				})
				if cell >= 0 {
					m.cell(s, labLeft+i*cellWide, rows[cell].Values[m.metric])
				}
			}
			s.y += cellHigh
		}
	}
	s.y += 8
	for i, line := range legend {
		s.text("legend", labLabels+i%2*panelWide*3/2, s.y+16*(i/2+1), line, "")
	}
	s.y += 16 * (len(legend) + 1) / 2
	return s.picture(labLeft+len(topologies)*cellWide+labLabels, m.title, "A line for each "+
		"algorithm, a column for each topology, a part for each network. The deeper the red, the "+
		"worse. Below each mean, its interval of 95 %.")
}

// labelClass makes the name of ours strong.
func labelClass(algorithm string) string {
	if algorithm == ours.Elector.Name {
		return "node strong"
	}
	return "node"
}

func (m matrix) cell(s *sheet, x int, e compare.Estimate) {
	s.add(`<rect class="noreign" fill-opacity="%.2f" x="%d" y="%d" width="%d" height="%d"/>`,
		0.75*m.scale.share(m.bad(e.Mean)), x, s.y, cellWide-1, cellHigh-1)
	s.text("tick strong", x+cellWide/2, s.y+12, brief(e.Mean), "")
	if e.Low != e.High {
		s.add(`<text class="tick" style="font-size:8px" x="%d" y="%d">%s</text>`,
			x+cellWide/2, s.y+23, brief(e.Low)+"-"+brief(e.High))
	}
}

// brief is a figure with at most three digits, except that all before the point stay.
func brief(v float64) string {
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

// dots is a picture of some metrics of some topologies: a panel for each topology, or for
// each metric, and a line in it for each algorithm.
type dots struct {
	title, about string
	panels       []panel
}

// panel has the metrics of a topology, one mark each.
type panel struct {
	title, topology string
	metrics         []string
	scale           scale
}

// dotLooks are the marks of the metrics of a panel.
var dotLooks = []struct{ class, mark string }{
	{"candidate", `<circle class="candidate" cx="%d" cy="%d" r="4.5"/>`},
	{"figures", `<path class="figures" transform="translate(%d,%d)" d="M-4-4H4V4H-4z"/>`},
}

var crashes = dots{"Until survivors of a crash know a new leader, s",
	"The first survivor is a circle, the last one a square.", []panel{
		{"its process is killed", "process-crash", []string{"first_knows_s", "last_knows_s"},
			scale{0.001, 100}},
		{"its host vanishes", "host-crash", []string{"first_knows_s", "last_knows_s"},
			scale{0.001, 100}},
	}}

var costs = dots{"What is sent while nothing goes wrong",
	"Of five nodes together.", []panel{
		{"messages a second", "whole", []string{"messages_per_s"}, scale{1, 1000}},
		{"bytes a second", "whole", []string{"bytes_per_s"}, scale{10, 10_000}},
	}}

func (d dots) draw(rows []compare.Row) []byte {
	s := &sheet{y: 30}
	s.text("title", labLabels, s.y, d.title, "")
	s.text("legend", labLabels, s.y+18, d.about+" Bars are intervals of 95 %.", "")
	s.y += 24
	for _, network := range compare.Names(rows, func(r compare.Row) string { return r.Network }) {
		s.y += 26
		s.text("variant", labLabels, s.y+12, network, "")
		top := s.y
		for i, p := range d.panels {
			s.y = top
			p.draw(s, labLeft+i*(panelWide+20), network, rows)
		}
	}
	s.y += 6
	return s.picture(labLeft+len(d.panels)*(panelWide+20)+labLabels, d.title, d.about)
}

func (p panel) draw(s *sheet, left int, network string, rows []compare.Row) {
	rows = slices.DeleteFunc(slices.Clone(rows), func(r compare.Row) bool {
		return r.Network != network || r.Topology != p.topology
	})
	at := func(v float64) int { return left + 20 + int(math.Round(p.scale.share(v)*(panelWide-40))) }
	s.text("figures", left+20, s.y-4, p.title, "")
	bottom := s.y + 20 + len(rows)*panelRow
	for v := p.scale.least; v < p.scale.most*1.5; v *= 10 {
		s.add(`<line class="grid" x1="%[1]d" y1="%[2]d" x2="%[1]d" y2="%[3]d"/>`, at(v), s.y+16, bottom)
		s.text("tick", at(v), s.y+12, brief(v), "")
	}
	s.y += 28
	for _, r := range rows {
		if left == labLeft {
			s.text(labelClass(r.Algorithm), labLabels, s.y+4, r.Algorithm, "")
		}
		for i, name := range p.metrics {
			e := r.Values[name]
			look := dotLooks[i]
			s.add(`<rect class="%s" x="%d" y="%d" width="%d" height="4"/>`, look.class, at(e.Low), s.y-2,
				max(at(e.High)-at(e.Low), leastWidth))
			s.add(look.mark, at(e.Mean), s.y)
		}
		s.y += panelRow
	}
}
