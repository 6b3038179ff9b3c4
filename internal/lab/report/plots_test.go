package report_test

import (
	"encoding/csv"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/internal/lab/report"
)

// The plots in docs are those of the figures that elector/detector and package published found.
func TestPlotsOfStudies(t *testing.T) {
	for picture, draw := range map[string]func() []byte{
		"detectors": func() []byte {
			plot, err := report.DetectorsPlot(lines(t, "../../../elector/detector/testdata/study.csv"))
			require.NoError(t, err)
			return plot
		},
		"raft": func() []byte {
			plot, err := report.ElectionsPlot(lines(t, "../published/testdata/raft.csv"))
			require.NoError(t, err)
			return plot
		},
		"omega": func() []byte {
			var files [3][][]string
			for i, name := range []string{"omega-id", "omega-lc", "omega-l"} {
				files[i] = lines(t, "../published/testdata/"+name+".csv")
			}
			plot, err := report.OmegaPlot(files)
			require.NoError(t, err)
			return plot
		},
		"omnipaxos": func() []byte {
			return omnipaxosPlot(lines(t, "../published/testdata/omnipaxos.csv"))
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
		Axes: []report.RowsAxis{{
			Axis: report.Axis{Label: "in time-outs; line: the paper's bound",
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

// lines are those of a file of figures, the names of the columns first.
func lines(t *testing.T, file string) [][]string {
	f, err := os.Open(file)
	require.NoError(t, err)
	defer f.Close()
	all, err := csv.NewReader(f).ReadAll()
	require.NoError(t, err)
	return all
}
