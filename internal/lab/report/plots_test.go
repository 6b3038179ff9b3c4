package report_test

import (
	"encoding/csv"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/internal/lab/replay"
	"github.com/bmqelect/bmqelect/internal/lab/report"
)

// The plots in docs are those of the figures that elector/detector and package published found.
func TestPlotsOfStudies(t *testing.T) {
	for picture, draw := range map[string]func() ([]byte, error){
		"detectors": func() ([]byte, error) {
			return report.DetectorsPlot(lines(t, "../../../elector/detector/testdata/study.csv"))
		},
		"raft": func() ([]byte, error) {
			return report.ElectionsPlot(lines(t, "../published/testdata/raft.csv"))
		},
		"omega": func() ([]byte, error) {
			var files [3][][]string
			for i, name := range []string{"omega-id", "omega-lc", "omega-l"} {
				files[i] = lines(t, "../published/testdata/"+name+".csv")
			}
			return report.OmegaPlot(files)
		},
		"omnipaxos": func() ([]byte, error) {
			titles := map[string]string{}
			for _, a := range replay.Algorithms() {
				titles[a.Name] = a.Title
			}
			return report.OmniPaxosPlot(lines(t, "../published/testdata/omnipaxos.csv"), titles)
		},
	} {
		plot, err := draw()
		require.NoError(t, err)
		golden(t, "../../../../docs/pictures/"+picture+".svg", plot)
	}
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
