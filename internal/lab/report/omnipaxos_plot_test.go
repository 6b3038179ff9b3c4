package report

import (
	"bytes"
	"slices"
	"strconv"
)

// The plot of the experiments of Omni-Paxos is drawn for a narrow column.
const (
	partitionWidth   = 440
	partitionZero    = 150 // where no time is
	partitionTimeout = 40  // pixels for a time-out
	partitionMost    = 6   // time-outs; what takes longer is beyond
	partitionRow     = 9
)

// OmniPaxosPlot draws the figures of internal/lab/published/testdata/omnipaxos.csv: by scenario
// and algorithm, the longest time without a leader in time-outs, from the least to the most,
// with the mean, a bar for each time-out, and what was published. Lines has the names of the
// columns first.
func OmniPaxosPlot(lines [][]string, titles map[string]string) ([]byte, error) {
	column := func(line []string, name string) string { return line[slices.Index(lines[0], name)] }
	at := func(line []string, name string) int {
		f, err := strconv.ParseFloat(column(line, name), 64)
		if err != nil {
			panic(err)
		}
		return partitionZero + int(min(f, partitionMost+0.5)*partitionTimeout)
	}
	s := &sheet{y: 40}
	s.text("title", plotLabels, 26, "Down-time after a partial partition", "")
	s.add(`<rect class="follower" x="%d" y="40" width="24" height="5"/>`, plotLabels)
	s.text("legend", plotLabels+30, 47, "least to most, and mean", "")
	s.add(`<rect class="candidate" x="%d" y="38" width="8" height="9"/>`, plotLabels+190)
	s.text("legend", plotLabels+204, 47, "published means", "")
	s.add(`<line class="mark" x1="%[1]d" y1="36" x2="%[1]d" y2="50"/>`, plotLabels+312)
	s.text("legend", plotLabels+318, 47, "published bound", "")
	s.y = 62
	for i := 1; i < len(lines); i++ {
		line, before := lines[i], lines[i-1]
		if column(line, "scenario") != column(before, "scenario") {
			rows := 0
			for _, l := range lines[i:] {
				if column(l, "scenario") == column(line, "scenario") {
					rows++
				}
			}
			s.partitionAxes(column(line, "scenario"), rows)
		}
		if column(line, "algorithm") != column(before, "algorithm") {
			s.y += 5
			s.text("node", plotLabels, s.y+18, titles[column(line, "algorithm")], "")
		}
		if column(line, "published_least") != "" {
			least := at(line, "published_least")
			s.add(`<rect class="candidate" x="%d" y="%d" width="%d" height="9"/>`, least, s.y,
				max(at(line, "published_most")-least, leastWidth))
		}
		least, mean := at(line, "least"), at(line, "mean")
		s.add(`<rect class="follower" x="%d" y="%d" width="%d" height="5"/>`, least, s.y+2,
			max(at(line, "most")-least, leastWidth))
		s.add(`<rect class="leader" x="%d" y="%d" width="3" height="7"/>`, mean-1, s.y+1)
		s.y += partitionRow
		if i == len(lines)-1 || column(line, "scenario") != column(lines[i+1], "scenario") {
			s.y += 14
		}
	}
	var b bytes.Buffer
	err := s.write(&b, partitionWidth, "Down-time after a partial partition, in election time-outs",
		"By scenario and algorithm the longest time without a leader; the three bars of each are "+
			"those of time-outs of 50, 500 and 5000 ms.")
	return b.Bytes(), err
}

// partitionAxes begins a scenario, with the axis of the rows that follow.
func (s *sheet) partitionAxes(name string, rows int) {
	s.text("variant", plotLabels, s.y+10, name, "")
	bottom := s.y + 18 + rows*partitionRow + rows/3*5
	line := func(class string, timeouts int) {
		s.add(`<line class="%s" x1="%[2]d" y1="%[3]d" x2="%[2]d" y2="%[4]d"/>`, class,
			partitionZero+timeouts*partitionTimeout, s.y+16, bottom)
	}
	for timeouts := range partitionMost + 1 {
		line("grid", timeouts)
		s.text("tick", partitionZero+timeouts*partitionTimeout, s.y+12, strconv.Itoa(timeouts), "")
	}
	s.text("tick", partitionZero+partitionMost*partitionTimeout+24, s.y+12, "more", "")
	line("mark", 4)
	s.y += 16
}
