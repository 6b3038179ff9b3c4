package detector

import (
	"bytes"
	"encoding/csv"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var rewrite = flag.Bool("rewrite", false,
	"play the whole study: write testdata/study.csv and the table of docs/detectors.md anew")

const (
	studyFile  = "testdata/study.csv"
	studyPage  = "../../docs/detectors.md"
	studyLives = 1000             // of a sender, in each cell: the seeds from 1 on
	studyUp    = 10 * time.Minute // the mean of a life; exponential
	studyDown  = 5 * time.Second
)

// studyColumns name what a line of the file says about one detector on one link. The promise of the
// configurator is left out if the link is infeasible.
var studyColumns = []string{"link", "delay_ms", "loss_percent", "period_ms",
	"promised_hours_between_mistakes", "detector", "median_ms", "worst_ms", "mistakes_per_hour",
	"accuracy_percent", "availability_percent"}

// studyLinks are the cells of the study.
func studyLinks() (links []Quality) {
	for _, ordered := range []bool{false, true} {
		for _, mean := range []time.Duration{ms, 10 * ms, 100 * ms} {
			for _, loss := range []float64{0, 0.01, 0.1} {
				links = append(links, Quality{Loss: loss, Delay: mean, Deviation: mean, Ordered: ordered})
			}
		}
	}
	return links
}

// study plays a cell: three detectors hear the same heartbeats, with the period that the
// configurator computes for an independent link. The miss count is the number of periods that fit
// into the detection time of NFD-E. Phi has the pause that makes it as fast as NFD-E on a quiet
// link.
func study(t *testing.T, link Quality) (lines [][]string) {
	known := link // no loss in 128 heartbeats is no proof that none can be
	known.Ordered, known.Loss = false, max(link.Loss, 1./256)
	plan, err := Configure(dailyMistake, known, anyPeriod)
	require.NoError(t, err)
	phi := PhiConfig{Threshold: 8, Window: 200, MinDeviation: 10 * ms}
	phi.Pause = plan.Detection() - plan.Period - phi.Least()
	names, records := []string{"miss count", "phi", "NFD-E"}, make([]record, 3)
	for life := range uint64(studyLives) {
		w := newWire(life+1, link)
		crash := time.Duration(w.rng.ExpFloat64() * float64(studyUp))
		accrual, err := NewPhi(phi)
		require.NoError(t, err)
		var watchers [3]watcher
		for i, d := range []Detector{
			MissCount(plan.Detection() / plan.Period), accrual, NewNFDE(plan.Detection()),
		} {
			watchers[i] = watcher{Detector: d, record: &records[i], crash: crash, trusts: true}
		}
		for arrived := range w.deliveries(plan.Period, crash) {
			for i := range watchers {
				watchers[i].take(arrived)
			}
		}
		for i := range watchers {
			watchers[i].end()
		}
	}
	cell := cellOf(t, link, known, plan.Period)
	for i := range records {
		lines = append(lines, slices.Concat(cell, []string{names[i]}, records[i].figures()))
	}
	return lines
}

// cellOf is what the lines of a cell have in common. The promise follows from the period and, on an
// ordered link, from the measured quality.
func cellOf(t *testing.T, link, known Quality, period time.Duration) []string {
	kind, promised := "independent", ""
	if link.Ordered {
		kind = "ordered"
		known = measured(t, newWire(0, link), period, 20_000)
	}
	plan, err := Configure(dailyMistake, known, Limits{Shortest: period, Longest: period})
	if !errors.As(err, new(*Infeasible)) {
		require.NoError(t, err)
		promised = fmt.Sprintf("%.2f", math.Floor(100*plan.Recurrence.Hours())/100)
	}
	return []string{kind, fmt.Sprint(link.Delay.Milliseconds()), fmt.Sprint(100 * link.Loss),
		inMilliseconds(period), promised}
}

// figures are those of a detector in a cell. Availability is the share of time in which the
// detector is right: it trusts a sender that is up, or suspects one that is down.
func (r *record) figures() []string {
	slices.Sort(r.detected)
	var late time.Duration
	for _, d := range r.detected {
		late += d
	}
	all := r.up + studyDown*time.Duration(len(r.detected))
	return []string{
		inMilliseconds(r.detected[len(r.detected)/2]), inMilliseconds(r.slowest()),
		fmt.Sprintf("%.3g", float64(r.mistakes)/r.up.Hours()),
		fmt.Sprintf("%.6f", 100*r.accuracy()),
		fmt.Sprintf("%.3f", 100*(1-(r.wrong+late).Seconds()/all.Seconds())),
	}
}

func inMilliseconds(d time.Duration) string { return fmt.Sprintf("%.0f", d.Seconds()*1000) }

// The file shows what the detectors do. Without -rewrite two cells are played: one in which loss
// matters, and one in which order does.
func TestStudy(t *testing.T) {
	links := studyLinks()
	if *rewrite {
		lines := [][]string{studyColumns}
		for _, link := range links {
			lines = append(lines, study(t, link)...)
		}
		var file bytes.Buffer
		require.NoError(t, csv.NewWriter(&file).WriteAll(lines))
		require.NoError(t, os.WriteFile(studyFile, file.Bytes(), 0o644))
	}
	lines := readStudy(t)
	require.Len(t, lines, 3*len(links))
	for _, i := range []int{1, len(links) - 3} {
		require.Equal(t, study(t, links[i]), lines[3*i:3*i+3], "go test -rewrite writes what is true")
	}
	for _, line := range lines {
		requireKept(t, line)
	}
}

func readStudy(t *testing.T) [][]string {
	file, err := os.Open(studyFile)
	require.NoError(t, err)
	defer file.Close()
	lines, err := csv.NewReader(file).ReadAll()
	require.NoError(t, err)
	require.Equal(t, studyColumns, lines[0])
	return lines[1:]
}

// requireKept demands that NFD-E keeps what was asked, wherever the configurator promised it.
func requireKept(t *testing.T, line []string) {
	figure := func(column string) float64 {
		f, err := strconv.ParseFloat(line[slices.Index(studyColumns, column)], 64)
		require.NoError(t, err, "%s: %s", line, column)
		return f
	}
	asked := 1 / time.Duration(dailyMistake.Mistakes).Hours()
	if line[4] == "" {
		require.Equal(t, "ordered", line[0], "%s: every independent link is good enough", line)
		return
	}
	require.GreaterOrEqual(t, figure("promised_hours_between_mistakes"), 1/asked, "%s", line)
	if line[5] != "NFD-E" {
		return
	}
	require.LessOrEqual(t, figure("mistakes_per_hour"), asked, "%s", line)
	require.GreaterOrEqual(t, figure("accuracy_percent"), 100*dailyMistake.Accuracy, "%s", line)
	// T_D^U holds with the true E(D). The mean of a window differs from it by a part of the
	// deviation: the worst of 1,000 means of 128 delays by a third, and more in a short life.
	require.LessOrEqual(t, figure("worst_ms"), dailyMistake.Detect.Seconds()*1000+
		figure("delay_ms")/2, "%s", line)
}

// The table in docs is that of the file.
func TestStudyTable(t *testing.T) {
	page, err := os.ReadFile(studyPage)
	require.NoError(t, err)
	parts := strings.SplitN(string(page), "```\n", 3)
	require.Len(t, parts, 3, "the table is the only block")
	table := studyTable(readStudy(t))
	if *rewrite {
		parts[1] = table
		require.NoError(t, os.WriteFile(studyPage, []byte(strings.Join(parts, "```\n")), 0o644))
	}
	require.Equal(t, table, parts[1], "go test -rewrite writes it")
}

// studyTable has a line for each link. Ordered links have one only if the order makes a difference.
func studyTable(lines [][]string) string {
	table := `                  detection, ms: median-worst    mistakes an hour       availability, %
delay loss period      miss       phi     NFD-E   miss    phi  NFD-E    miss    phi  NFD-E
`
	same := func(i int) bool {
		for d := range 3 {
			if !slices.Equal(lines[i+d][5:], lines[i+d-len(lines)/2][5:]) {
				return false
			}
		}
		return true
	}
	for i := 0; i < len(lines); i += 3 {
		if ordered := lines[i][0] == "ordered"; ordered && same(i) {
			continue
		}
		if i == 0 || lines[i][0] != lines[i-3][0] || lines[i][0] == "ordered" && same(i-3) {
			table += lines[i][0] + "\n"
		}
		table += fmt.Sprintf("%3sms %3s%% %4sms ", lines[i][1], lines[i][2], lines[i][3])
		for _, line := range lines[i : i+3] {
			table += fmt.Sprintf("%10s", line[6]+"-"+line[7])
		}
		for _, line := range lines[i : i+3] {
			table += fmt.Sprintf("%7s", line[8])
		}
		table += " "
		for _, line := range lines[i : i+3] {
			table += fmt.Sprintf("%7s", line[10])
		}
		table += "\n"
	}
	return table
}
