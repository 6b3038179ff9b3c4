package report_test

import (
	"encoding/csv"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/internal/lab/algorithm/all"
	"github.com/bmqelect/bmqelect/internal/lab/report"
)

// The plot in docs is that of what package compare found.
func TestOmniPaxosPlot(t *testing.T) {
	file, err := os.Open("../compare/testdata/omnipaxos.csv")
	require.NoError(t, err)
	defer file.Close()
	lines, err := csv.NewReader(file).ReadAll()
	require.NoError(t, err)
	titles := map[string]string{}
	for _, a := range all.Algorithms() {
		titles[a.Name] = a.Title
	}
	plot, err := report.OmniPaxosPlot(lines, titles)
	require.NoError(t, err)
	golden(t, "../../../../docs/pictures/omnipaxos.svg", plot)
}
