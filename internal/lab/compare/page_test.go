package compare

import (
	"bytes"
	"encoding/xml"
	"io"
	"maps"
	"slices"
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

// A line has the worst of its figures; those of the worst line have a star.
func TestTheTableHasTheWorst(t *testing.T) {
	rows := labRows()
	for _, r := range rows[:2] {
		r.Algorithm, r.Own, r.Values = "raft", true, maps.Clone(r.Values)
		r.Values["overlap_s"] = Estimate{Mean: 100}
		rows = append(rows, r)
	}
	for _, c := range []struct {
		rows []Row
		want string
	}{{equalRows(rows), `
          two leaders  demotions  no leader  availability  crash known  messages  bytes
                    s         /h          s             %            s        /s     /s
bmqelect            7          7          7            *1            5         1      1
raft               *8         *8         *8             2           *6        *2     *2
`}, {ownRows(rows), `
           two leaders  demotions  no leader  availability  crash known  messages  bytes
                     s         /h          s             %            s        /s     /s
raft                 4         *4         *4             2            -        *2     *2
raft, own         *100          2          2            *1            -        *2     *2
`}} {
		var table bytes.Buffer
		require.NoError(t, writeTable(&table, c.rows))
		require.Equal(t, c.want, "\n"+table.String())
	}
}

func TestThePage(t *testing.T) {
	beaten := func(metric, network string, ours, best float64) Beaten {
		i := slices.IndexFunc(Metrics, func(m Metric) bool { return m.Name == metric })
		return Beaten{Network: network, Rival: "raft", Metric: Metrics[i],
			Ours: Estimate{Mean: ours, Low: ours / 2, High: 2 * ours}, Best: best}
	}
	own := beaten("recovery_s", "9 ms", 1, 0.5)
	own.Own = true
	losses := []Loss{{Topology: "whole", Why: "So it is", Figures: []Beaten{
		beaten("availability", "1 ms", 98, 99), beaten("recovery_s", "1 ms", 0.5, 0.25),
		beaten("recovery_s", "9 ms", 1.5, 1), own}}}
	alone := beaten("demotions_per_hour", "1 ms", 3, 0)
	alone.Rival = ""
	losses = append(losses, Loss{Topology: "chain", Why: "Likewise, once more",
		Figures: []Beaten{beaten("availability", "1 ms", 98, 99), alone}})
	page, err := writePage(labRows(), losses, []string{"raft  x  a term: 5 demotions"})
	require.NoError(t, err)
	require.Contains(t, string(page), "300 seeds")
	require.Contains(t, string(page), "- **whole**: no leader 1.5 s (0.75-3; 9 ms), raft 1 s; with "+
		"own timers no leader 1 s (0.5-2; 9\n  ms), raft 0.5 s. So it is.\n")
	require.Contains(t, string(page), "- **chain**: needless demotions 3 /h (1.5-6; 1 ms); "+
		"availability 98 % (49-196; 1 ms), raft 99 %.\n  Likewise, once more.\n")
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
