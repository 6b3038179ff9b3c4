package report

import (
	"bytes"
	"math"
	"strconv"
)

// omegaPlot is where things are: 0 s of T_r, one demotion an hour, an unavailability of 0.1 %, ten
// messages a second, and how many pixels a second and a decade take.
const (
	omegaRecovery, omegaSecond                = 110, 64
	omegaDemotions, omegaGaps, omegaMessages  = 280, 396, 510
	omegaDecade, omegaBottom, omegaRows       = 30, 0.5, 12
	omegaWidth, omegaLossy, omegaCrashingEnds = 610, 5, 8
)

// OmegaPlot draws the study of Schiper and Toueg's algorithms in package compare: by setting, the
// recovery time, unjustified demotions, availability and messages of Omega_id, Omega_lc and
// Omega_l. Lines are those of their files, in this order, with the names of the columns first.
// Bars mark what the article says: T_r is T_D^U; on lossy links lambda_u is 6 or 0 an hour, and a
// stable service is available for 99.8 % of the time.
func OmegaPlot(files [3][][]string) ([]byte, error) {
	s := &sheet{y: 62}
	s.text("title", plotLabels, 26, "Omega_id, Omega_lc, Omega_l: as published", "")
	x := plotLabels + 5
	for i, name := range []string{"Omega_id", "Omega_lc", "Omega_l"} {
		s.add(plotLooks[i].mark, x, 44)
		s.text("legend", x+10, 48, name, "")
		x += 34 + len(name)*letterWidth
	}
	s.add(`<line class="mark" x1="%[1]d" y1="38" x2="%[1]d" y2="50"/>`, x)
	s.text("legend", x+6, 48, "published", "")
	for row := range omegaRows {
		switch row {
		case 0:
			s.omegaAxes("links lose and delay", omegaLossy, true)
		case omegaLossy:
			s.omegaAxes("links crash for 3 s", omegaCrashingEnds-omegaLossy, true)
		case omegaCrashingEnds:
			s.omegaAxes("10 ms, 1 %: by T_D^U", omegaRows-omegaCrashingEnds, false)
		}
		s.omegaRow(row, [3][]string{files[0][row+1], files[1][row+1], files[2][row+1]})
	}
	s.y += 8
	var b bytes.Buffer
	err := s.write(&b, omegaWidth, "Recovery, demotions, availability and messages of three services",
		"By setting and algorithm, the figures of the study. Lines mark what the article says.")
	return b.Bytes(), err
}

// omegaRow draws a setting: a line of each file.
func (s *sheet) omegaRow(row int, lines [3][]string) {
	figure := func(line []string, column int) float64 {
		f, err := strconv.ParseFloat(line[column], 64)
		if err != nil {
			panic(err)
		}
		return f
	}
	published := func(x, from, to int) {
		s.add(`<line class="mark" x1="%[1]d" y1="%[2]d" x2="%[1]d" y2="%[3]d"/>`,
			x, s.y+from*plotDetector-5, s.y+to*plotDetector+5)
	}
	of, lossy := lines[0], row < omegaLossy
	label := of[0] + " ms, " + of[1] + " %"
	if row >= omegaCrashingEnds {
		label = strconv.FormatFloat(figure(of, 3)/1000, 'f', -1, 64) + " s"
	} else if !lossy {
		label = "every " + of[2] + " s"
	}
	s.text("node", plotLabels, s.y+plotDetector+4, label, "")
	if lossy || row >= omegaCrashingEnds {
		published(omegaRecovery+int(figure(of, 3)*omegaSecond/1000), 0, 2)
	}
	if lossy {
		published(omegaLog(omegaDemotions, 6), 0, 0)
		published(omegaLog(omegaDemotions, 0), 1, 2)
		published(omegaLog(omegaGaps, 2), 1, 2)
	}
	for i, line := range lines {
		y, mark := s.y+i*plotDetector, plotLooks[i].mark
		if figure(line, 4) > 0 {
			s.add(mark, omegaRecovery+int(figure(line, 5)*omegaSecond/1000), y)
		}
		if row < omegaCrashingEnds {
			s.add(mark, omegaLog(omegaDemotions, figure(line, 6)), y)
			s.add(mark, omegaLog(omegaGaps, 10*(100-figure(line, 7))), y)
		}
		s.add(mark, omegaLog(omegaMessages, figure(line, 8)/10), y)
	}
	s.y += plotRow
}

// omegaLog is where a value is on a logarithmic axis that begins with 1 at x. What is below
// omegaBottom is drawn there.
func omegaLog(x int, value float64) int {
	return x + int(math.Round(math.Log10(max(value, omegaBottom))*omegaDecade))
}

// omegaAxes begins a part of the plot, with the axes of the rows that follow.
func (s *sheet) omegaAxes(name string, rows int, all bool) {
	bottom := s.y + 44 + rows*plotRow
	s.text("variant", plotLabels, s.y+14, name, "")
	axis := func(x, step int, title string, labels ...string) {
		s.text("figures", x-10, s.y+30, title, "")
		for i, label := range labels {
			at := x + i*step
			s.add(`<line class="grid" x1="%[1]d" y1="%[2]d" x2="%[1]d" y2="%[3]d"/>`, at, s.y+50, bottom)
			s.text("tick", at, s.y+46, label, "")
		}
	}
	axis(omegaRecovery, omegaSecond, "T_r, s", "0", "1", "2")
	if all {
		axis(omegaDemotions, omegaDecade, "demotions an hour", "1", "10", "100")
		axis(omegaGaps, omegaDecade, "available, %", "99.9", "99", "90")
		s.text("tick", omegaLog(omegaDemotions, 0), s.y+46, "0", "")
	}
	axis(omegaMessages, omegaDecade, "messages a second", "10", "100", "1000")
	s.y += 64
}
