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

	of func(runs []Figures, bytes float64) Estimate
}

// Metrics are all metrics, what harms most first: the order of the columns.
var Metrics = []Metric{
	{"overlap_s", "two leaders", "s", true, false, true, perRun(
		func(f Figures) float64 { return f.Overlap.Seconds() })},
	{"demotions_per_hour", "needless demotions", "/h", true, false, true, per(time.Hour,
		func(f Figures) float64 { return float64(f.Demotions) })},
	{"recovery_s", "no leader", "s", true, false, false, perRun(
		func(f Figures) float64 { return f.Recovery.Seconds() })},
	{"availability", "availability", "%", true, true, false, func(runs []Figures, _ float64) Estimate {
		down := Ratio(column(runs, func(f Figures) float64 { return f.Leaderless.Seconds() }),
			measured(runs, time.Second))
		return Estimate{100 - 100*down.Mean, 100 - 100*down.High, 100 - 100*down.Low}
	}},
	{"first_knows_s", "crash known to the first", "s", false, false, false, perRun(
		func(f Figures) float64 { return f.FirstKnows.Seconds() })},
	{"last_knows_s", "crash known to the last", "s", true, false, false, perRun(
		func(f Figures) float64 { return f.LastKnows.Seconds() })},
	{"elections", "elections", "", false, false, false, perRun(
		func(f Figures) float64 { return float64(f.Elections) })},
	{"messages_per_s", "messages", "/s", false, false, false, per(time.Second,
		func(f Figures) float64 { return float64(f.Messages) })},
	{"bytes_per_s", "bytes", "/s", false, false, false, func(runs []Figures, bytes float64) Estimate {
		return per(time.Second, func(f Figures) float64 { return float64(f.Messages) * bytes })(runs, 0)
	}},
}

func column(runs []Figures, of func(Figures) float64) []float64 {
	values := make([]float64, len(runs))
	for i, f := range runs {
		values[i] = of(f)
	}
	return values
}

func measured(runs []Figures, unit time.Duration) []float64 {
	return column(runs, func(f Figures) float64 { return float64(f.Measured) / float64(unit) })
}

func perRun(of func(Figures) float64) func([]Figures, float64) Estimate {
	return func(runs []Figures, _ float64) Estimate {
		return Ratio(column(runs, of), column(runs, func(Figures) float64 { return 1 }))
	}
}

func per(unit time.Duration, of func(Figures) float64) func([]Figures, float64) Estimate {
	return func(runs []Figures, _ float64) Estimate {
		return Rate(column(runs, of), measured(runs, unit))
	}
}

// Fill sets the figures of a row to those of its runs, whose messages have a mean size.
func (r *Row) Fill(runs []Figures, bytes float64) {
	r.Seeds, r.Values = len(runs), map[string]Estimate{}
	for _, m := range Metrics {
		r.Values[m.Name] = m.of(runs, bytes)
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
	var rows []Row
	for i, line := range lines[1:] {
		row := Row{Topology: line[0], Network: line[1], Algorithm: line[2], Own: line[3] == "true",
			Values: map[string]Estimate{}}
		var values []float64
		for _, text := range line[4:] {
			v, err := strconv.ParseFloat(text, 64)
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", i+2, err)
			}
			values = append(values, v)
		}
		row.Seeds, values = int(values[0]), values[1:]
		for k, m := range Metrics {
			row.Values[m.Name] = Estimate{values[3*k], values[3*k+1], values[3*k+2]}
		}
		rows = append(rows, row)
	}
	return rows, nil
}
