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

// OmegaPlot draws the study of Schiper and Toueg's algorithms in package published: by setting, the
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
		s.omegaRow(row, files)
	}
	s.y += 8
	var b bytes.Buffer
	err := s.write(&b, omegaWidth, "Recovery, demotions, availability and messages of three services",
		"By setting and algorithm, the figures of the study. Lines mark what the article says.")
	return b.Bytes(), err
}

// omegaFigures are those of a setting, of all seeds together.
type omegaFigures struct {
	crashes, recovery, demotions, available, messages float64
}

// omegaColumn are the columns of the setting, and of the figures of one seed.
const (
	omegaDelay, omegaLoss, omegaEvery, omegaDetect = 1, 2, 3, 4
	omegaCrashes                                   = 5
)

func omegaFigure(line []string, column int) float64 {
	f, err := strconv.ParseFloat(line[column], 64)
	if err != nil {
		panic(err)
	}
	return f
}

// omegaPool is the mean over the seeds; of recoveries, over all of them.
func omegaPool(file [][]string, row int) (f omegaFigures) {
	seeds := 0.
	for i := row + 1; i < len(file); i += omegaRows {
		line := file[i]
		crashes := omegaFigure(line, omegaCrashes)
		f.crashes += crashes
		f.recovery += crashes * omegaFigure(line, omegaCrashes+1)
		f.demotions += omegaFigure(line, omegaCrashes+2)
		f.available += omegaFigure(line, omegaCrashes+3)
		f.messages += omegaFigure(line, omegaCrashes+4)
		seeds++
	}
	return omegaFigures{f.crashes, f.recovery / f.crashes, f.demotions / seeds, f.available / seeds,
		f.messages / seeds}
}

// omegaRow draws a setting.
func (s *sheet) omegaRow(row int, files [3][][]string) {
	published := func(x, from, to int) {
		s.add(`<line class="mark" x1="%[1]d" y1="%[2]d" x2="%[1]d" y2="%[3]d"/>`,
			x, s.y+from*plotDetector-5, s.y+to*plotDetector+5)
	}
	of, lossy, detects := files[0][row+1], row < omegaLossy, row >= omegaCrashingEnds
	detect := omegaFigure(of, omegaDetect) / 1000
	label := of[omegaDelay] + " ms, " + of[omegaLoss] + " %"
	if detects {
		label = strconv.FormatFloat(detect, 'f', -1, 64) + " s"
	} else if !lossy {
		label = "every " + of[omegaEvery] + " s"
	}
	s.text("node", plotLabels, s.y+plotDetector+4, label, "")
	if lossy || detects {
		published(omegaRecovery+int(detect*omegaSecond), 0, 2)
	}
	if lossy {
		published(omegaLog(omegaDemotions, 6), 0, 0)
		published(omegaLog(omegaDemotions, 0), 1, 2)
		published(omegaLog(omegaGaps, 2), 1, 2)
	}
	for i, file := range files {
		y, mark, f := s.y+i*plotDetector, plotLooks[i].mark, omegaPool(file, row)
		s.add(mark, omegaRecovery+int(f.recovery*omegaSecond/1000), y)
		if !detects { // there the leader crashes every few seconds
			s.add(mark, omegaLog(omegaDemotions, f.demotions), y)
			s.add(mark, omegaLog(omegaGaps, 10*(100-f.available)), y)
		}
		s.add(mark, omegaLog(omegaMessages, f.messages/10), y)
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
