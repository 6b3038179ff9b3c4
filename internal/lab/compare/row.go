package compare

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"
)

// Row has the figures of one algorithm in one topology on one network. Times are in seconds,
// rates per hour or per second.
type Row struct {
	Topology, Network, Algorithm string
	Own                          bool // with the algorithm's own timers
	Seeds                        int
	// Values has a figure for the name of each of Metrics.
	Values map[string]Estimate
}

// String names the row.
func (r Row) String() string { return r.Topology + ", " + r.Network + ", " + r.Line() }

// Line is the algorithm, and whether its timers are its own.
func (r Row) Line() string {
	if r.Own {
		return r.Algorithm + ", own"
	}
	return r.Algorithm
}

// Metric is one figure of a row.
type Metric struct {
	Name        string // of its columns
	Title, Unit string // as in sentences
	// Held: ours must be the best, or equal. Most: higher is better. Never: ours must be 0.
	Held, Most, Never bool

	per time.Duration // of the time measured; 0: of a run
	of  func(Figures) float64
}

// Metrics are all metrics, what harms most first: the order of the columns.
var Metrics = []Metric{
	{"overlap_s", "two leaders", "s", true, false, true, 0,
		func(f Figures) float64 { return f.Overlap.Seconds() }},
	{"demotions_per_hour", "needless demotions", "/h", true, false, true, time.Hour,
		func(f Figures) float64 { return float64(f.Demotions) }},
	{"recovery_s", "no leader", "s", true, false, false, 0,
		func(f Figures) float64 { return f.Recovery.Seconds() }},
	{"availability", "availability", "%", true, true, false, time.Second,
		func(f Figures) float64 { return 100 * (f.Measured - f.Leaderless).Seconds() }},
	{"first_knows_s", "crash known to the first", "s", false, false, false, 0,
		func(f Figures) float64 { return f.FirstKnows.Seconds() }},
	{"last_knows_s", "crash known to the last", "s", true, false, false, 0,
		func(f Figures) float64 { return f.LastKnows.Seconds() }},
	{"elections", "elections", "", false, false, false, 0,
		func(f Figures) float64 { return float64(f.Elections) }},
	{"messages_per_s", "messages", "/s", false, false, false, time.Second,
		func(f Figures) float64 { return float64(f.Messages) }},
	{"bytes_per_s", "bytes", "/s", false, false, false, time.Second,
		func(f Figures) float64 { return f.Bytes }},
}

// Fill sets the figures of a row to those of its runs.
func (r *Row) Fill(runs []Figures) {
	r.Seeds, r.Values = len(runs), map[string]Estimate{}
	for _, m := range Metrics {
		estimate, seen, looked := Ratio, []float64(nil), []float64(nil)
		for _, f := range runs {
			seen, looked = append(seen, m.of(f)), append(looked, 1)
			if m.per != 0 {
				estimate, looked[len(looked)-1] = Rate, float64(f.Measured)/float64(m.per)
			}
		}
		r.Values[m.Name] = estimate(seen, looked)
	}
}

// decimals is how many the file has: times to the tenth of a millisecond.
const decimals = 4

// columns are the names in the first line of the file.
func columns() []string {
	names := []string{"topology", "network", "algorithm", "own_timers", "seeds"}
	for _, m := range Metrics {
		names = append(names, m.Name, m.Name+"_low", m.Name+"_high")
	}
	return names
}

// Write writes rows as a file of comma-separated values.
func Write(w io.Writer, rows []Row) error {
	lines := [][]string{columns()}
	for _, r := range rows {
		line := []string{r.Topology, r.Network, r.Algorithm, strconv.FormatBool(r.Own),
			strconv.Itoa(r.Seeds)}
		for _, m := range Metrics {
			e := r.Values[m.Name]
			for _, v := range []float64{e.Mean, e.Low, e.High} {
				line = append(line, strconv.FormatFloat(v, 'f', decimals, 64))
			}
		}
		lines = append(lines, line)
	}
	return csv.NewWriter(w).WriteAll(lines)
}

// Read reads what Write wrote.
func Read(r io.Reader) ([]Row, error) {
	lines, err := csv.NewReader(r).ReadAll()
	if err != nil {
		return nil, err
	}
	if len(lines) == 0 || !slices.Equal(lines[0], columns()) {
		return nil, errors.New("these are not the columns of the laboratory's file")
	}
	rows := make([]Row, len(lines)-1)
	for i, line := range lines[1:] {
		values := make([]float64, len(line))
		for k, text := range line[4:] {
			if values[k], err = strconv.ParseFloat(text, 64); err != nil {
				return nil, fmt.Errorf("line %d: %w", i+2, err)
			}
		}
		rows[i] = Row{line[0], line[1], line[2], line[3] == "true", int(values[0]), map[string]Estimate{}}
		for k, m := range Metrics {
			rows[i].Values[m.Name] = Estimate{values[3*k+1], values[3*k+2], values[3*k+3]}
		}
	}
	return rows, nil
}
