package report

import (
	"bytes"
	"slices"
	"strconv"
)

// The plot of Raft's election times is drawn for a narrow column.
const (
	electionsWidth  = 440
	electionsZero   = 110 // where 0 ms is
	electionsSecond = 400 // pixels for a second
	electionsEnd    = 700 // ms
	electionsSplit  = 426
	electionsRow    = 20
)

// ElectionsPlot draws internal/lab/published/testdata/raft.csv: by range of timeouts, how long five
// servers had no leader, published and in the laboratory, and how many elections split. Lines
// have the names of the columns first.
func ElectionsPlot(lines [][]string) ([]byte, error) {
	column := func(line []string, name string) string { return line[slices.Index(lines[0], name)] }
	at := func(line []string, name string) int {
		f, err := strconv.Atoi(column(line, name))
		if err != nil {
			panic(err)
		}
		return electionsZero + f*electionsSecond/1000
	}
	s := &sheet{y: 92}
	s.text("title", plotLabels, 26, "Raft's election times: as published", "")
	s.add(plotLooks[0].mark, plotLabels+5, 44)
	s.text("legend", plotLabels+15, 48, "published", "")
	s.add(plotLooks[2].mark, plotLabels+105, 44)
	s.text("legend", plotLabels+115, 48, "here, of 200", "")
	s.text("figures", electionsZero, 68, "ms without a leader, median or mean", "")
	s.text("figures", electionsSplit-40, 68, "split", "")
	bottom := s.y + (len(lines)-1)*electionsRow - 6
	for ms := 0; ms <= electionsEnd-100; ms += 100 {
		x := electionsZero + ms*electionsSecond/1000
		s.add(`<line class="grid" x1="%[1]d" y1="84" x2="%[1]d" y2="%[2]d"/>`, x, bottom)
		s.text("tick", x, 80, strconv.Itoa(ms), "")
	}
	for _, line := range lines[1:] {
		name := column(line, "least_ms") + "-" + column(line, "most_ms")
		if column(line, "failed") != "1" {
			name += ", 2 fail"
		}
		s.text("node", plotLabels, s.y+4, name, "")
		published, here := at(line, "published_ms"), at(line, "ours_ms")
		s.add(`<rect class="leader" x="%d" y="%d" width="%d" height="2"/>`, min(published, here), s.y-1,
			max(published, here)-min(published, here))
		s.add(plotLooks[0].mark, published, s.y)
		s.add(plotLooks[2].mark, here, s.y)
		s.text("tick", electionsSplit-18, s.y+4, column(line, "split_percent")+" %", "")
		s.y += electionsRow
	}
	var b bytes.Buffer
	err := s.write(&b, electionsWidth, "Election times of Raft, published and in the laboratory",
		"By range of election timeouts in ms, the time without a leader of five servers after the "+
			"leader's crash: as in Ongaro's dissertation, and of the laboratory's machine; then how "+
			"many elections needed more than one term.")
	return b.Bytes(), err
}
