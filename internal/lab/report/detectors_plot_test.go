package report

import (
	"bytes"
	"math"
	"slices"
	"strconv"
)

// The plot of docs/detectors.md is drawn for a narrow column.
const (
	plotWidth    = 440
	plotLabels   = 12
	plotDetect   = 104 // where 0 s is
	plotSecond   = 54  // pixels for a second
	plotNone     = 290 // where no mistakes are
	plotRarest   = 306 // where 0.01 an hour is
	plotDecade   = 36
	plotRow      = 36
	plotDetector = 10
)

// plotLooks are the marks of the detectors, in the order of the study: square, circle, diamond.
var plotLooks = []struct{ class, mark string }{
	{"figures", `<path class="figures" transform="translate(%d,%d)" d="M-4-4H4V4H-4z"/>`},
	{"candidate", `<circle class="candidate" cx="%d" cy="%d" r="4.5"/>`},
	{"leader", `<path class="leader" transform="translate(%d,%d)" d="M0-5.5L5.5 0L0 5.5L-5.5 0z"/>`},
}

// DetectorsPlot draws the study of elector/detector: by link, how long each detector takes
// to detect a crash, from the median to the worst, and how often it is mistaken. Lines are
// those of its file, the names of the columns first.
func DetectorsPlot(lines [][]string) ([]byte, error) {
	column := func(line []string, name string) string { return line[slices.Index(lines[0], name)] }
	figure := func(line []string, name string) float64 {
		f, err := strconv.ParseFloat(column(line, name), 64)
		if err != nil {
			panic(err)
		}
		return f
	}
	s := &sheet{y: 62}
	s.text("title", plotLabels, 26, "Three detectors, the same heartbeats", "")
	x := plotLabels + 5
	for i, look := range plotLooks {
		name := column(lines[1+i], "detector")
		s.add(look.mark, x, 44)
		s.text("legend", x+10, 48, name, "")
		x += 30 + len(name)*letterWidth
	}
	s.add(`<line class="mark" x1="%[1]d" y1="38" x2="%[1]d" y2="50"/>`, x)
	s.text("legend", x+6, 48, "asked", "")
	for i := 1; i < len(lines); i += len(plotLooks) {
		line := lines[i]
		if i == 1 || column(line, "link") != column(lines[i-1], "link") {
			s.plotAxes(column(line, "link"))
		}
		s.text("node", plotLabels, s.y+plotDetector+4,
			column(line, "delay_ms")+" ms, "+column(line, "loss_percent")+" %", "")
		for d, look := range plotLooks {
			y := s.y + d*plotDetector
			median, worst := figure(lines[i+d], "median_ms"), figure(lines[i+d], "worst_ms")
			at := plotDetect + int(median*plotSecond/1000)
			s.add(`<rect class="%s" x="%d" y="%d" width="%d" height="4"/>`, look.class, at, y-2,
				plotDetect+int(worst*plotSecond/1000)-at)
			s.add(look.mark, at, y)
			s.add(look.mark, plotMistakes(figure(lines[i+d], "mistakes_per_hour")), y)
		}
		s.y += plotRow
	}
	s.y += 8
	var b bytes.Buffer
	err := s.write(&b, plotWidth, "Detection time and mistakes of three failure detectors",
		"By link and detector, the figures of the table: bars from the median to the worst detection "+
			"time, and mistakes an hour on a logarithmic scale. Lines mark what was asked.")
	return b.Bytes(), err
}

// plotAxes begins a part of the plot, with the axes of the rows that follow.
func (s *sheet) plotAxes(name string) {
	const rows = 9
	bottom := s.y + 44 + rows*plotRow
	s.text("variant", plotLabels, s.y+14, name, "")
	s.text("figures", plotDetect+12, s.y+14, "detection, s: median, worst", "")
	s.text("figures", plotNone, s.y+14, "mistakes an hour", "")
	line := func(class string, x int) {
		s.add(`<line class="%s" x1="%[2]d" y1="%[3]d" x2="%[2]d" y2="%[4]d"/>`, class, x, s.y+34, bottom)
	}
	tick := func(x int, text string) {
		line("grid", x)
		s.text("tick", x, s.y+30, text, "")
	}
	for second := range 4 {
		tick(plotDetect+second*plotSecond, strconv.Itoa(second))
	}
	tick(plotNone, "0")
	for decade, text := range []string{".01", ".1", "1", "10"} {
		tick(plotRarest+decade*plotDecade, text)
	}
	line("mark", plotDetect+plotSecond)
	line("mark", plotMistakes(1./24))
	s.y += 48
}

func plotMistakes(hourly float64) int {
	if hourly == 0 {
		return plotNone
	}
	return plotRarest + int(math.Round((math.Log10(hourly)+2)*plotDecade))
}
