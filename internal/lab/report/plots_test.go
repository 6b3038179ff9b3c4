package report_test

import (
	"encoding/csv"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/internal/lab/report"
)

// The plots in docs are those of the figures that elector/detector and package published found.
func TestPlotsOfStudies(t *testing.T) {
	for picture, draw := range map[string]func() []byte{
		"detectors": func() []byte {
			return detectorsPlot(lines(t, "../../../elector/detector/testdata/study.csv"))
		},
		"raft": func() []byte { return raftPlot(lines(t, "../published/testdata/raft.csv")) },
		"raft-lan": func() []byte {
			return raftCurves(t, "LAN", 10, 20, 50, 100, 200, 500, 1000, 3000, 10_000, 30_000)
		},
		"raft-wan": func() []byte {
			return raftCurves(t, "WAN, simulated", 300, 500, 1000, 2000, 3000)
		},
		"omega": func() []byte { return omegaPlot(lines(t, "../published/testdata/omega.csv")) },
		"omnipaxos": func() []byte {
			return omnipaxosPlot(lines(t, "../published/testdata/omnipaxos.csv"))
		},
		"messages": func() []byte {
			return messagesPlot(t, lines(t, "../published/testdata/messages.csv"))
		},
		"chen": func() []byte {
			return chenPlot(t, lines(t, "../../../elector/detector/testdata/chen.csv"))
		},
		"phi": func() []byte {
			return phiPlot(t, lines(t, "../../../elector/detector/testdata/phi.csv"))
		},
	} {
		golden(t, "../../../../docs/pictures/"+picture+".svg", draw())
	}
}

func omnipaxosPlot(lines [][]string) []byte {
	return report.RowsPlot{
		Title: "Down-time after a partial partition: as published",
		About: "By scenario, algorithm and election time-out, the longest time in which nobody led, " +
			"in time-outs: mean and its interval of 95 %. The line is the bound that the paper gives " +
			"for Omni-Paxos.",
		Labels: 142, Series: []string{"published January 2023", "published March 2023", "here"},
		Bound: "published bound",
		Axes: []report.RowsAxis{{
			Axis: report.Axis{Label: "time-outs without a leader",
				Ticks: []float64{0, 2, 4, 6, 8, 10}},
			Figure: "down", Width: 240, Beyond: "never",
			Bounds: []report.RowsBound{{Row: "Omni-Paxos", At: 4}},
		}, {
			Axis:   report.Axis{Label: "leaders after it", Ticks: []float64{0, 30, 60}},
			Figure: "leaders", Width: 80,
		}},
		Lines: lines[1:],
	}.SVG()
}

func detectorsPlot(lines [][]string) []byte {
	p := report.RowsPlot{
		Title: "Three detectors, the same heartbeats",
		About: "By link and detector, the detection time from the median to the worst, and mistakes " +
			"an hour. Lines mark what was asked.",
		Labels: 92, Series: []string{"miss count", "phi", "NFD-E"}, Bound: "asked",
		Axes: []report.RowsAxis{
			{Axis: report.Axis{Label: "detection, s: median to worst", Ticks: []float64{0, 1, 2, 3}},
				Figure: "detection", Width: 160, Bounds: []report.RowsBound{{At: 1}}},
			{Axis: report.Axis{Label: "mistakes/h (0: edge)", Log: true,
				Ticks: []float64{.01, .1, 1, 10, 100}},
				Figure: "mistakes", Width: 150, Bounds: []report.RowsBound{{At: 1. / 24}}},
		},
	}
	for _, line := range lines[1:] {
		of := map[string]string{}
		for i, name := range lines[0] {
			of[name] = line[i]
		}
		row := []string{of["link"], of["delay_ms"] + " ms, " + of["loss_percent"] + " %"}
		s, often := "e-3", of["mistakes_per_hour"]
		p.Lines = append(p.Lines,
			append(row, "detection", of["detector"], of["median_ms"]+s, of["median_ms"]+s, of["worst_ms"]+s),
			append(row, "mistakes", of["detector"], often, often, often))
	}
	return p.SVG()
}

func omegaPlot(lines [][]string) []byte {
	asked := []report.RowsBound{{Group: "links", At: 1}}
	for row, at := range map[string]float64{"0.1 s": .1, "0.25 s": .25, "0.5 s": .5, "1 s": 1} {
		asked = append(asked, report.RowsBound{Group: "by", Row: row, At: at})
	}
	log := func(label, figure string, width int, ticks ...float64) report.RowsAxis {
		return report.RowsAxis{Axis: report.Axis{Label: label, Ticks: ticks, Log: true},
			Figure: figure, Width: width}
	}
	return report.RowsPlot{
		Title: "Omega_id, Omega_lc, Omega_l: after Schiper and Toueg",
		About: "By setting and algorithm, the recovery time and the asked detection time, demotions " +
			"of leaders that were up, the time without a leader that all follow, and messages.",
		Labels: 106, Series: []string{"omega-id", "omega-lc", "omega-l"}, Bound: "asked: T_D^U",
		Axes: []report.RowsAxis{
			{Axis: report.Axis{Label: "T_r, s", Ticks: []float64{0, 0.5, 1, 1.5, 2}},
				Figure: "T_r", Width: 140, Bounds: asked},
			log("demotions/h (0: edge)", "demotions", 130, 0.1, 1, 10, 100, 1000),
			log("without a leader, %", "down", 110, 0.01, 0.1, 1, 10, 100),
			log("messages/s", "messages", 100, 10, 100, 1000, 20_000),
		},
		Lines: lines[1:],
	}.SVG()
}

func raftPlot(lines [][]string) []byte {
	axis := report.Axis{Label: "median, ms; bars: 95 %", Log: true,
		Ticks: []float64{20, 100, 500, 2000, 10_000, 50_000}}
	longest := report.Axis{Label: "longest, ms", Log: true,
		Ticks: []float64{100, 1000, 10_000, 100_000, 1_000_000}}
	return report.RowsPlot{
		Title: "Raft's election times: as published",
		About: "By range of election timeouts, the time without a leader of five servers: as in " +
			"Ongaro's dissertation, and here.",
		Labels: 206, Series: []string{"published", "here"},
		Axes: []report.RowsAxis{
			{Axis: axis, Figure: "50 %", Width: 270, Beyond: "never"},
			{Axis: longest, Figure: "longest", Width: 200, Beyond: "never"},
		},
		Lines: lines[1:],
	}.SVG()
}

// raftCurves has a curve for each range of timeouts, in which it ever ends.
func raftCurves(t *testing.T, group string, ticks ...float64) []byte {
	p := report.CurvesPlot{
		Title: "Raft's election times, " + group,
		About: "Quantiles of the time without a leader, by range of election timeouts: as in Ongaro's " +
			"dissertation (line), and here (marks).",
		X: report.Axis{Label: "this share of elections was not slower, %",
			Ticks: []float64{0, 10, 25, 50, 75, 90, 100}},
		Y: report.Axis{Label: "ms without a leader: published (line), here (marks; bars: 95 %)",
			Ticks: ticks, Log: true},
	}
	for _, line := range lines(t, "../published/testdata/raft.csv")[1:] {
		share, percent := strings.CutSuffix(line[2], " %")
		if line[0] != group || !percent || line[1] == "150-150 ms" {
			continue
		}
		if n := len(p.Series); n == 0 || p.Series[n-1].Label != line[1] {
			p.Series = append(p.Series, report.Series{Label: line[1]})
		}
		at, last := report.Point{X: number(t, share), Y: number(t, line[4])}, &p.Series[len(p.Series)-1]
		if line[3] == "published" {
			last.Curve = append(last.Curve, at)
			continue
		}
		at.Low, at.High = number(t, line[5]), number(t, line[6])
		last.Marks = append(last.Marks, at)
	}
	return p.SVG()
}

func messagesPlot(t *testing.T, lines [][]string) []byte {
	p := report.CurvesPlot{
		Title: "Messages of one election",
		About: "Lines are the formulas of the literature, marks what the simulator counted, from 3 to " +
			"64 members: of the bully algorithm after a failure, of Chang and Roberts' ring if all " +
			"start, of a list ring if one does.",
		X: report.Axis{Label: "members", Ticks: []float64{3, 4, 6, 8, 12, 16, 24, 32, 48, 64}, Log: true},
		Y: report.Axis{Label: "messages: formula (line), simulator (marks)",
			Ticks: []float64{2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000}, Log: true},
		Series: curves(t, lines),
	}
	for i, s := range p.Series { // its columns are of a formula, and of what was counted
		for k, mark := range s.Marks {
			p.Series[i].Curve = append(p.Series[i].Curve, report.Point{X: mark.X, Y: mark.Y})
			p.Series[i].Marks[k] = report.Point{X: mark.X, Y: mark.Low}
		}
	}
	return p.SVG()
}

func chenPlot(t *testing.T, lines [][]string) []byte {
	p := report.CurvesPlot{
		Title: "NFD and a simple detector: after Chen and others",
		About: "Mean time between mistakes against the bound of the detection time, in heartbeat " +
			"periods: the exact curve of NFD-S, and what was simulated of NFD-S, NFD-E and a simple " +
			"detector with two cutoffs.",
		X: report.Axis{Label: "bound of the detection time, s (a heartbeat a second)",
			Ticks: []float64{1, 1.5, 2, 2.5, 3, 3.5}},
		Y: report.Axis{Label: "mean time between mistakes, s; bars: 95 %", Log: true,
			Ticks: []float64{1, 10, 100, 1000, 10_000, 100_000, 1_000_000, 3_000_000}},
		Series: curves(t, lines),
	}
	p.Series[0].Curve, p.Series[0].Marks = p.Series[0].Marks, nil
	return p.SVG()
}

func phiPlot(t *testing.T, lines [][]string) []byte {
	return report.CurvesPlot{
		Title: "Phi and NFD-E: after Hayashibara and others",
		About: "Mistakes an hour against the mean detection time, for thresholds of phi from 0.5 to " +
			"16 and margins of NFD-E from 5 to 160 ms.",
		X: report.Axis{Label: "mean detection time, ms (a heartbeat each 100 ms)",
			Ticks: []float64{0, 50, 100, 150, 200, 250}},
		Y: report.Axis{Label: "mistakes an hour; bars: 95 %", Log: true,
			Ticks: []float64{.1, 1, 10, 100, 1000, 10_000, 100_000}},
		Series: curves(t, lines),
	}.SVG()
}

// curves are the series of a file, as marks: a series, x, y, and the interval.
func curves(t *testing.T, lines [][]string) (all []report.Series) {
	for _, line := range lines[1:] {
		if len(all) == 0 || all[len(all)-1].Label != line[0] {
			i := slices.IndexFunc(all, func(s report.Series) bool { return s.Label == line[0] })
			require.Negative(t, i, "%s: its lines stand together", line[0])
			all = append(all, report.Series{Label: line[0]})
		}
		var of [4]float64
		for i, field := range line[1:] {
			of[i] = number(t, field)
		}
		last := &all[len(all)-1]
		last.Marks = append(last.Marks, report.Point{X: of[0], Y: of[1], Low: of[2], High: of[3]})
	}
	return all
}

func number(t *testing.T, field string) float64 {
	v, err := strconv.ParseFloat(field, 64)
	require.NoError(t, err)
	return v
}

// lines are those of a file of figures, the names of the columns first.
func lines(t *testing.T, file string) [][]string {
	f, err := os.Open(file)
	require.NoError(t, err)
	defer f.Close()
	all, err := csv.NewReader(f).ReadAll()
	require.NoError(t, err)
	return all
}
