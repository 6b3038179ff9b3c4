package published

import (
	"encoding/csv"
	"flag"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/compare"
	"github.com/bmqelect/bmqelect/internal/lab/sim"
	"github.com/bmqelect/bmqelect/internal/testkit"
)

var update = flag.Bool("update", false,
	"write the files of figures anew; the study of Omega takes half an hour")

// members are n names.
func members(n int) (ids []elector.NodeID) {
	for i := range n {
		ids = append(ids, elector.NodeID(fmt.Sprintf("n%02d", i)))
	}
	return ids
}

// start makes a cluster of voters with the same settings.
func start(t testing.TB, cfg sim.Config, ids []elector.NodeID, each elector.Config) *sim.Sim {
	each.Voters = ids
	for _, each.Self = range ids {
		cfg.Nodes = append(cfg.Nodes, sim.NodeConfig{Elector: each})
	}
	s, err := sim.New(cfg)
	require.NoError(t, err)
	return s
}

// figures are the lines of a file from which package report draws: of each group, row, figure and
// series a value and its interval of 95 %. An infinite value is one that never ended.
type figures struct {
	lines  [][]string
	values map[[4]string]compare.Estimate
}

func (f *figures) add(group, row, figure, series string, e compare.Estimate) {
	if f.values == nil {
		f.values = map[[4]string]compare.Estimate{}
		f.lines = [][]string{{"group", "row", "figure", "series", "value", "low", "high"}}
	}
	f.values[[4]string{group, row, figure, series}] = e
	f.lines = append(f.lines, []string{group, row, figure, series,
		digits(e.Mean), digits(e.Low), digits(e.High)})
}

// golden compares with the file.
func (f *figures) golden(t *testing.T, name string) {
	var text strings.Builder
	require.NoError(t, csv.NewWriter(&text).WriteAll(f.lines))
	testkit.Golden(t, "testdata/"+name, text.String())
}

// sample compares with the file what was played of it, or writes all, and returns what it holds.
func (f *figures) sample(t *testing.T, name string) (held figures) {
	if *update {
		f.golden(t, name)
	}
	lines := readCSV(t, name)
	for _, line := range f.lines[1:] {
		require.Contains(t, lines, line, "-update plays all, and writes %s", name)
	}
	for _, l := range lines {
		held.add(l[0], l[1], l[2], l[3],
			compare.Estimate{Mean: number(t, l[4]), Low: number(t, l[5]), High: number(t, l[6])})
	}
	return held
}

// digits writes four of them.
func digits(v float64) string {
	short, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'e', 3, 64), 64)
	return strconv.FormatFloat(short, 'f', -1, 64)
}

// single is a value without an interval.
func single(v float64) compare.Estimate { return compare.Estimate{Mean: v, Low: v, High: v} }

// mean is that of all, and twice its standard error either way.
func mean(all []float64) (e compare.Estimate) {
	squares, n := 0., float64(len(all))
	for _, v := range all {
		e.Mean += v / n
		squares += v * v / n
	}
	half := 1.96 * math.Sqrt(max(squares-e.Mean*e.Mean, 0)/(n-1))
	return compare.Estimate{Mean: e.Mean, Low: e.Mean - half, High: e.Mean + half}
}

// readCSV returns the lines of a file of testdata, without the names of the columns.
func readCSV(t testing.TB, name string) [][]string {
	f, err := os.Open("testdata/" + name)
	require.NoError(t, err)
	defer f.Close()
	lines, err := csv.NewReader(f).ReadAll()
	require.NoError(t, err)
	return lines[1:]
}

// number parses a field.
func number(t testing.TB, field string) float64 {
	v, err := strconv.ParseFloat(field, 64)
	require.NoError(t, err)
	return v
}
