package report_test

import (
	"encoding/csv"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/internal/lab/report"
)

// The plot in docs is that of what elector/detector found.
func TestDetectorsPlot(t *testing.T) {
	file, err := os.Open("../../../elector/detector/testdata/study.csv")
	require.NoError(t, err)
	defer file.Close()
	lines, err := csv.NewReader(file).ReadAll()
	require.NoError(t, err)
	plot, err := report.DetectorsPlot(lines)
	require.NoError(t, err)
	golden(t, "../../../../docs/pictures/detectors.svg", plot)
}

// The plot of Omega is that of what package compare found.
func TestOmegaPlot(t *testing.T) {
	var files [3][][]string
	for i, name := range []string{"omega-id", "omega-lc", "omega-l"} {
		file, err := os.Open("../compare/testdata/" + name + ".csv")
		require.NoError(t, err)
		defer file.Close()
		files[i], err = csv.NewReader(file).ReadAll()
		require.NoError(t, err)
	}
	plot, err := report.OmegaPlot(files)
	require.NoError(t, err)
	golden(t, "../../../../docs/pictures/omega.svg", plot)
}
