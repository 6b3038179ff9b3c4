package report

import (
	"bytes"
	"encoding/xml"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/internal/lab/compare"
)

// labRows are two algorithms in two topologies on two networks. All figures of a row are the
// same, so that it is seen which one is shown.
func labRows() (rows []compare.Row) {
	v := 1.
	for _, topology := range []string{"whole", "process-crash"} {
		for _, network := range []string{"1 ms", "9 ms"} {
			for _, algorithm := range []string{"bmqelect", "raft"} {
				r := compare.Row{Topology: topology, Network: network, Algorithm: algorithm, Seeds: 300,
					Values: map[string]compare.Estimate{}}
				for _, m := range compare.Metrics {
					r.Values[m.Name] = compare.Estimate{Mean: v, Low: v / 2, High: 2 * v}
				}
				rows = append(rows, r)
				v++
			}
		}
	}
	return rows
}

func TestTheTableHasTheWorst(t *testing.T) {
	var table bytes.Buffer
	require.NoError(t, LaboratoryTable(&table, labRows()))
	require.Equal(t, `          availability  no leader  demotions  two leaders  crash known  messages  bytes
                     %          s         /h            s            s        /s     /s
bmqelect             1          7          7            7            5         1      1
raft                 2          8          8            8            6         2      2
`, table.String())
}

func TestThePage(t *testing.T) {
	beaten := func(metric int, network string, ours, best float64) compare.Beaten {
		return compare.Beaten{Network: network, Rival: "raft", Metric: compare.Metrics[metric],
			Ours: compare.Estimate{Mean: ours, Low: ours / 2, High: 2 * ours}, Best: best}
	}
	losses := []compare.Loss{{Topology: "whole", Why: "So it is", Figures: []compare.Beaten{
		beaten(0, "1 ms", 98, 99), beaten(1, "1 ms", 0.5, 0.25), beaten(1, "9 ms", 1.5, 1)}}}
	alone := beaten(2, "1 ms", 3, 0)
	alone.Rival = ""
	losses = append(losses, compare.Loss{Topology: "chain", Why: "Likewise, once more",
		Figures: []compare.Beaten{beaten(0, "1 ms", 98, 99), alone}})
	page, err := LaboratoryPage(labRows(), losses,
		[]Example{{Algorithm: "raft", Scenario: "x", Why: "a term", Cost: "5 demotions"}})
	require.NoError(t, err)
	require.Contains(t, string(page), "300 seeds")
	require.Contains(t, string(page), "- **whole**: no leader 1.5 s (0.75-3), raft 1 s. So it is.\n")
	require.Contains(t, string(page), "- **chain**: availability 98 % (49-196), raft 99 %; "+
		"needless demotions 3 /h (1.5-6). Likewise,\n  once more.\n")
	require.Contains(t, string(page),
		"\nraft"+strings.Repeat(" ", 23)+"x"+strings.Repeat(" ", 30)+"a term: 5 demotions\n")
	page, err = LaboratoryPage(labRows(), nil, nil)
	require.NoError(t, err)
	require.Contains(t, string(page), "Nowhere, by more than chance.")
}

func TestThePlots(t *testing.T) {
	plots := LaboratoryPlots(labRows(), []string{"whole: <nothing>"})
	require.Len(t, plots, len(matrices)+2)
	for name, plot := range plots {
		d := xml.NewDecoder(bytes.NewReader(plot))
		for err := error(nil); err != io.EOF; {
			_, err = d.Token()
			require.True(t, err == nil || err == io.EOF, "%s: %v", name, err)
		}
	}
	availability := string(plots["laboratory-availability.svg"])
	require.Contains(t, availability, `class="node strong" x="12"`, "our own name is strong")
	require.Contains(t, availability, "whole: &lt;nothing&gt;")
	// raft, after a crash, on the second network: 8, from 4 to 16.
	require.Contains(t, availability, ">8</text>")
	require.Contains(t, availability, ">4-16</text>")
}

func TestScales(t *testing.T) {
	s := scale{0.1, 1000}
	for v, want := range map[float64]float64{0: 0, 0.1: 0, 1: 0.25, 10: 0.5, 1000: 1, 5000: 1} {
		require.InDelta(t, want, s.share(v), 1e-9, v)
	}
}

func TestFiguresAreBrief(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 0.0004: "0", 0.009: "0.009", 0.25: "0.25", 1.234: "1.23", 9.996: "10", 12.34: "12.3",
		99.4: "99.4", 99.997: "99.99", 100: "100", 8782.4: "8782",
	} {
		require.Equal(t, want, brief(v))
	}
}
