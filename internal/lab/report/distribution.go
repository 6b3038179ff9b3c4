package report

import (
	"cmp"
	"io"
	"slices"
	"time"

	"github.com/fatih/color"

	"github.com/bmqelect/bmqelect/internal/lab/history"
)

// Distribution writes how the figures of many runs spread: the value that half
// of the runs do not exceed, 90 %, 99 %, and the worst one. Of availability the
// low values are the bad ones: 99 % of the runs reach what is below p99. It
// returns the error of w.
func Distribution(w io.Writer, all []history.Summary, o TextOptions) error {
	p := newPrinter(w, o)
	head := pad("runs: "+count(len(all)), figureName)
	for _, name := range []string{"p50", "p90", "p99", "worst"} {
		head += padLeft(name, spreadValue)
	}
	p.line(p.paint(head, color.Bold))
	p.spread("fail-over time", quantiles(failovers(all), seconds))
	p.spread("time without leader", quantiles(each(all, func(s history.Summary) time.Duration { return s.Leaderless }), seconds))
	p.spread("availability", quantiles(each(all, func(s history.Summary) float64 { return -s.Availability }), func(f float64) string { return percent(-f) }))
	p.spread("leader changes", quantiles(each(all, func(s history.Summary) int { return s.LeaderChanges }), count))
	p.spread("needless demotions", quantiles(each(all, func(s history.Summary) int { return s.Demotions }), count))
	p.spread("messages", quantiles(each(all, func(s history.Summary) int { return s.Messages }), count))
	return p.close()
}

const spreadValue = 12 // columns of a quantile

func (p *printer) spread(name string, values [4]string) {
	line := pad(name, figureName)
	for _, v := range values {
		line += padLeft(v, spreadValue)
	}
	p.line(line)
}

// failovers are all times between two leaders, of all runs together.
func failovers(all []history.Summary) []time.Duration {
	var times []time.Duration
	for _, s := range all {
		times = append(times, s.Failovers...)
	}
	return times
}

// each maps the runs to one of their figures.
func each[T any](all []history.Summary, f func(history.Summary) T) []T {
	values := make([]T, len(all))
	for i, s := range all {
		values[i] = f(s)
	}
	return values
}

// quantiles formats the 50th, 90th and 99th percentile and the maximum; dashes
// if there are no values.
func quantiles[T cmp.Ordered](values []T, format func(T) string) (q [4]string) {
	slices.Sort(values)
	for i, share := range []int{50, 90, 99, 100} {
		q[i] = "-"
		if len(values) > 0 {
			q[i] = format(percentile(values, share))
		}
	}
	return q
}

// percentile is the least value that share percent of the values do not exceed
// (nearest rank). Values are sorted and not empty; share is 1 to 100.
func percentile[T any](values []T, share int) T {
	return values[(len(values)*share+99)/100-1]
}
