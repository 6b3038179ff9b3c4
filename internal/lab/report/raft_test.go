package report_test

import (
	"encoding/csv"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/internal/lab/report"
)

// The plot in docs is that of what package compare found.
func TestElectionsPlot(t *testing.T) {
	file, err := os.Open("../compare/testdata/raft.csv")
	require.NoError(t, err)
	defer file.Close()
	lines, err := csv.NewReader(file).ReadAll()
	require.NoError(t, err)
	plot, err := report.ElectionsPlot(lines)
	require.NoError(t, err)
	golden(t, "../../../../docs/pictures/raft.svg", plot)
}
