package compare

import (
	"bytes"
	"encoding/xml"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

// labRows are two algorithms in two topologies on two networks. All figures of a row are the
// same, so that it is seen which one is shown.
func labRows() (rows []Row) {
	v := 1.
	for _, topology := range []string{"whole", "process-crash"} {
		for _, network := range []string{"1 ms", "9 ms"} {
			for _, algorithm := range []string{"bmqelect", "raft"} {
				r := Row{Topology: topology, Network: network, Algorithm: algorithm, Seeds: 300,
					Values: map[string]Estimate{}}
				for _, m := range Metrics {
					r.Values[m.Name] = Estimate{Mean: v, Low: v / 2, High: 2 * v}
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
	require.NoError(t, writeTable(&table, labRows()))
	require.Equal(t, `          availability  no leader  demotions  two leaders  crash known  messages  bytes
                     %          s         /h            s            s        /s     /s
bmqelect             1          7          7            7            5         1      1
raft                 2          8          8            8            6         2      2
`, table.String())
}

func TestThePage(t *testing.T) {
	beaten := func(metric int, network string, ours, best float64) Beaten {
		return Beaten{Network: network, Rival: "raft", Metric: Metrics[metric],
			Ours: Estimate{Mean: ours, Low: ours / 2, High: 2 * ours}, Best: best}
	}
	losses := []Loss{{Topology: "whole", Why: "So it is", Figures: []Beaten{
		beaten(0, "1 ms", 98, 99), beaten(1, "1 ms", 0.5, 0.25), beaten(1, "9 ms", 1.5, 1)}}}
	alone := beaten(2, "1 ms", 3, 0)
	alone.Rival = ""
	losses = append(losses, Loss{Topology: "chain", Why: "Likewise, once more",
		Figures: []Beaten{beaten(0, "1 ms", 98, 99), alone}})
	page, err := writePage(labRows(), losses, []string{"raft  x  a term: 5 demotions"})
	require.NoError(t, err)
	require.Contains(t, string(page), "300 seeds")
	require.Contains(t, string(page), "- **whole**: no leader 1.5 s (0.75-3), raft 1 s. So it is.\n")
	require.Contains(t, string(page), "- **chain**: availability 98 % (49-196), raft 99 %; "+
		"needless demotions 3 /h (1.5-6). Likewise,\n  once more.\n")
	require.Contains(t, string(page), "\nraft  x  a term: 5 demotions\n")
	page, err = writePage(labRows(), nil, nil)
	require.NoError(t, err)
	require.Contains(t, string(page), "Nowhere, by more than chance.")
}

// The pictures have a mark or a cell for each figure.
func TestThePlots(t *testing.T) {
	pictures := plots(labRows())
	require.Len(t, pictures, len(heats)+len(panels))
	for name, plot := range pictures {
		d := xml.NewDecoder(bytes.NewReader(plot))
		for err := error(nil); err != io.EOF; {
			_, err = d.Token()
			require.True(t, err == nil || err == io.EOF, "%s: %v", name, err)
		}
	}
	availability := string(pictures["availability"])
	require.Contains(t, availability, `class="node strong" x="12"`, "our own name is strong")
	require.Contains(t, availability, "whole: nothing goes wrong")
	// raft, after a crash, on the second network: 8, from 4 to 16.
	require.Contains(t, availability, ">8</text>")
	require.Contains(t, availability, ">4-16</text>")
}
