package detector

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var rewrite = flag.Bool("rewrite", false, "write testdata/study.txt anew")

const (
	studyFile   = "testdata/study.txt"
	studyLives  = 1000
	studyUp     = 10 * time.Minute // the mean of a life; exponential
	studyDown   = 5 * time.Second
	studyHeader = `Three detectors hear the same heartbeats over 1,000 lives of their sender, in simulation.

Asked: a crash is detected within 1 s, a mistake a day, right with 0.99999. The sender crashes
every 10 min, and is back after 5 s. Delays are exponential. The period is the configurator's
for independent heartbeats: it promises nothing on an ordered link, on which none overtakes
another. "miss" counts as many periods as fit in a second; "phi" has the threshold 8, a least
deviation of 10 ms, and the pause that makes it as fast as NFD-E on a still link.
Rewritten by: go test ./elector/detector -run TestStudy -rewrite

                       mean detection, ms  slowest detection, ms  mistakes an hour    right, % of the time
   delay loss  period   miss   phi NFD-E   miss   phi NFD-E     miss    phi  NFD-E     miss     phi   NFD-E
`
)

// A cell of the study: what each detector did on one link.
func study(link Quality, seed uint64) (period time.Duration, records [3]record) {
	known := link
	known.Ordered, known.Loss = false, max(link.Loss, 1./256)
	plan, err := Configure(dailyMistake, known, anyPeriod)
	if err != nil {
		panic(err)
	}
	phi := PhiConfig{Threshold: 8, Window: 200, MinDeviation: 10 * ms}
	still := duration(normalQuantile(phi.Threshold) * phi.MinDeviation.Seconds())
	phi.Pause = plan.Detection() - plan.Period - still
	for life := range uint64(studyLives) {
		w := newWire(seed+life, link)
		crash := time.Duration(w.rng.ExpFloat64() * float64(studyUp))
		p, err := NewPhi(phi)
		if err != nil {
			panic(err)
		}
		var watchers [3]watcher
		for i, d := range []Detector{
			MissCount(plan.Detection() / plan.Period), p, NewNFDE(plan.Detection()),
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
	return plan.Period, records
}

// line plays a cell, and returns its line of the page.
func line(link Quality) string {
	period, records := study(link, 1)
	text := fmt.Sprintf("%8s %3.0f%% %6.0fms ", link.Delay, 100*link.Loss, period.Seconds()*1000)
	for _, column := range []struct {
		format string
		value  func(r record) float64
	}{
		{"%6.0f", func(r record) float64 { return r.detected.Seconds() * 1000 / float64(r.crashes) }},
		{"%6.0f", func(r record) float64 { return r.slowest.Seconds() * 1000 }},
		{"%7.3g", func(r record) float64 { return float64(r.mistakes) / r.up.Hours() }},
		{"%8.4f", func(r record) float64 {
			down := studyDown * time.Duration(r.crashes)
			return 100 * (1 - (r.wrong+r.detected).Seconds()/(r.up+down).Seconds())
		}},
	} {
		for _, r := range records {
			text += fmt.Sprintf(column.format, column.value(r))
		}
		text += "  "
	}
	return strings.TrimRight(text, " ") + "\n"
}

// The page is what the detectors do. Without -rewrite, one cell has to show it.
func TestStudy(t *testing.T) {
	if *rewrite {
		page := studyHeader
		for _, ordered := range []bool{false, true} {
			page += map[bool]string{false: "independent\n", true: "ordered\n"}[ordered]
			for _, mean := range []time.Duration{ms, 10 * ms, 100 * ms} {
				for _, loss := range []float64{0, 0.01, 0.1} {
					page += line(Quality{Loss: loss, Delay: mean, Deviation: mean, Ordered: ordered})
				}
			}
		}
		require.NoError(t, os.WriteFile(studyFile, []byte(page), 0o644))
	}
	page, err := os.ReadFile(studyFile)
	require.NoError(t, err)
	require.Contains(t, string(page), studyHeader)
	require.Contains(t, string(page), line(Quality{Loss: 0.01, Delay: ms, Deviation: ms}))
}
