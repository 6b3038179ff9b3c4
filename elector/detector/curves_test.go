package detector

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"math"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A curve has the name of its detector, and its points are lines of a file: where the point is, and
// the interval of 95 % that it is in.
type curve struct {
	series string
	points []point
}

type point struct{ x, y, low, high float64 }

// counted is a point at x, for what happened so often in some time: its recurrence. The interval is
// that of a count; of none it is the rule of three.
func counted(x float64, count int, in float64) point {
	k := float64(max(count, 1))
	half := 1.96 * math.Sqrt(k)
	if count == 0 {
		return point{x, in, in / 3, math.Inf(1)}
	}
	high := math.Inf(1)
	if k > half {
		high = in / (k - half)
	}
	return point{x, in / k, in / (k + half), high}
}

// keepCurves compares with the file what the curves are now, or writes it. Lines that were not
// played are those of the file.
func keepCurves(t *testing.T, name string, now []curve) (held map[string][]point) {
	lines := [][]string{{"series", "x", "y", "low", "high"}}
	digits := func(v float64) string {
		short, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'e', 3, 64), 64)
		return strconv.FormatFloat(short, 'f', -1, 64)
	}
	for _, c := range now {
		for _, p := range c.points {
			lines = append(lines, []string{c.series, digits(p.x), digits(p.y), digits(p.low),
				digits(p.high)})
		}
	}
	if *rewrite {
		var file bytes.Buffer
		require.NoError(t, csv.NewWriter(&file).WriteAll(lines))
		require.NoError(t, os.WriteFile("testdata/"+name, file.Bytes(), 0o644))
	}
	file, err := os.Open("testdata/" + name)
	require.NoError(t, err)
	defer file.Close()
	all, err := csv.NewReader(file).ReadAll()
	require.NoError(t, err)
	for _, line := range lines {
		require.Contains(t, all, line, "go test -rewrite writes what is true")
	}
	held = map[string][]point{}
	for _, line := range all[1:] {
		var of [4]float64
		for i := range of {
			of[i], err = strconv.ParseFloat(line[1+i], 64)
			require.NoError(t, err)
		}
		held[line[0]] = append(held[line[0]], point{of[0], of[1], of[2], of[3]})
	}
	return held
}

// nfdS is NFD-S of [CTA]: sender and receiver have one clock, and heartbeat i makes the receiver
// trust until detect after it was scheduled.
type nfdS struct{ detect, deadline time.Duration }

func (d *nfdS) Observe(_ time.Duration, hb Heartbeat) time.Duration {
	d.deadline = max(d.deadline, hb.Scheduled+d.detect)
	return d.deadline
}

// simple is the common detector that [CTA] compares with: the timeout begins with the newest
// arrival. Heartbeats that took longer than the cutoff do not count, so that a crash is detected
// within both together.
type simple struct{ cutoff, timeout, deadline time.Duration }

func (d *simple) Observe(now time.Duration, hb Heartbeat) time.Duration {
	if now-hb.Scheduled <= d.cutoff {
		d.deadline = max(d.deadline, now+d.timeout)
	}
	return d.deadline
}

// chen is the simulation of Chen, Toueg and Aguilera [CTA, section 7]: the mean time between
// mistakes against the bound of the detection time, with a heartbeat a second, of which one in a
// hundred is lost, and exponential delays of 20 ms on the mean. That setting and the cutoffs of the
// simple detector are recalled, not read; the exact curve is the theorem's. All is 100 times as
// fast, so that the window of NFD-E is full.
func chen(t *testing.T, detects []float64) (curves []curve) {
	const eta, mistakes, longest = 10 * time.Millisecond, 1000, 20_000_000
	scaled := func(seconds float64) time.Duration { return duration(seconds / 100) }
	exact := curve{series: "NFD-S, exact"}
	for _, x := range detects {
		y, _, _ := nfds{1, x - 1, 0.01, exponential(0.02)}.exact()
		exact.points = append(exact.points, point{x, y, y, y})
	}
	curves = append(curves, exact)
	for _, d := range []struct {
		series string
		make   func(detect float64) Detector
	}{
		{"NFD-S", func(x float64) Detector { return &nfdS{detect: scaled(x)} }},
		{"NFD-E", func(x float64) Detector { return NewNFDE(scaled(x - 0.02)) }},
		{"simple, cutoff 0.16 s", func(x float64) Detector {
			return &simple{cutoff: scaled(.16), timeout: scaled(x - .16)}
		}},
		{"simple, cutoff 0.08 s", func(x float64) Detector {
			return &simple{cutoff: scaled(.08), timeout: scaled(x - .08)}
		}},
	} {
		c := curve{series: d.series}
		for i, x := range detects {
			beats := min(mistakes*exact.points[i].y, longest)
			var r record
			w := newWire(uint64(100*x), Quality{Loss: 0.01, Delay: scaled(.02)})
			r.watch(d.make(x), w, eta, time.Duration(beats)*eta)
			c.points = append(c.points, counted(x, r.mistakes, r.up.Seconds()*100))
		}
		curves = append(curves, c)
	}
	return curves
}

// TestChensCurves demands what [CTA] found: E(T_MR) of NFD-S climbs in stairs, each 1/p_L as high
// as the one before, when the detection time passes a whole number of periods; NFD-E is as good;
// the simple detector is never better, and worse by an order of magnitude and more beyond two
// periods.
func TestChensCurves(t *testing.T) {
	detects := []float64{1.25, 1.5, 1.75, 2}
	if *rewrite {
		detects = []float64{1, 1.25, 1.5, 1.75, 2, 2.05, 2.1, 2.15, 2.2, 2.25, 2.5, 2.75, 3, 3.05, 3.1,
			3.15, 3.2, 3.5}
	}
	held := keepCurves(t, "chen.csv", chen(t, detects))
	at := func(series string, x float64) point {
		i := slices.IndexFunc(held[series], func(p point) bool { return p.x == x })
		require.GreaterOrEqual(t, i, 0, "%s at %v", series, x)
		return held[series][i]
	}
	for _, exact := range held["NFD-S, exact"] {
		for _, series := range []string{"NFD-S", "NFD-E"} {
			p := at(series, exact.x)
			require.Less(t, p.low/1.1, exact.y, "%s at %v", series, exact.x)
			require.Greater(t, p.high*1.1, exact.y, "%s at %v", series, exact.x)
		}
		for _, series := range []string{"simple, cutoff 0.16 s", "simple, cutoff 0.08 s"} {
			require.Less(t, at(series, exact.x).low, 1.1*exact.y, "%s at %v", series, exact.x)
		}
	}
	for _, series := range []string{"NFD-S, exact", "NFD-S", "NFD-E"} {
		require.InEpsilon(t, 100, at(series, 2.5).y/at(series, 1.5).y, .2, "%s: a stair", series)
		require.InEpsilon(t, 1, at(series, 1.75).y/at(series, 1.25).y, .2, "%s: a landing", series)
	}
	require.Greater(t, at("NFD-E", 2.1).low, 10*at("simple, cutoff 0.16 s", 2.1).high)
	require.Greater(t, at("NFD-E", 2.5).low, 5*at("simple, cutoff 0.08 s", 2.5).high)
	require.Greater(t, at("NFD-E", 3.1).low, 10*at("simple, cutoff 0.08 s", 3.1).high)
}

// hayashibara is the comparison of Hayashibara and others' paper on phi [phi]: how often a detector
// is wrong, against how long it takes on the mean to detect a crash, for many thresholds of phi and
// margins of NFD-E. There the heartbeats crossed the world; here is a link like that, with a
// heartbeat each 100 ms, of which 0.4 % are lost, and exponential delays of 10 ms on the mean. (The
// trace had losses in bursts.) The window of phi is 1,000, and nothing is added to its estimate.
func hayashibara(t *testing.T, thresholds, margins []float64) []curve {
	const eta, beats = 100 * time.Millisecond, 1_000_000
	all := []curve{{series: "phi"}, {series: "NFD-E"}}
	play := func(series int, d Detector) {
		var r record
		w := newWire(1, Quality{Loss: 0.004, Delay: 10 * ms})
		watched := &lateness{Detector: d}
		r.watch(watched, w, eta, beats*eta)
		took := watched.sum.Seconds()/float64(watched.n) - eta.Seconds()/2
		p := counted(1000*took, r.mistakes, r.up.Hours())
		all[series].points = append(all[series].points, point{p.x, 1 / p.y, 1 / p.high, 1 / p.low})
	}
	for _, threshold := range thresholds {
		d, err := NewPhi(PhiConfig{Threshold: threshold, Window: 1000, MinDeviation: ms})
		require.NoError(t, err)
		play(0, d)
	}
	for _, margin := range margins {
		play(1, NewNFDE(eta+duration(margin/1000)))
	}
	return all
}

// lateness measures how long after a heartbeat was scheduled its sender is suspected, if it is the
// last one. A crash is half a period later, on the mean.
type lateness struct {
	Detector
	sum time.Duration
	n   int
}

func (l *lateness) Observe(now time.Duration, hb Heartbeat) time.Duration {
	deadline := l.Detector.Observe(now, hb)
	l.sum, l.n = l.sum+deadline-hb.Scheduled, l.n+1
	return deadline
}

// TestHayashibarasCurves demands what was found there: phi and Chen's detector lie on one curve;
// and mistakes become rarer at two places: up to a threshold of 2, where phi passes most of the
// delays, and from 8 to 14, where it passes a lost heartbeat.
func TestHayashibarasCurves(t *testing.T) {
	thresholds := []float64{.5, 1, 1.5, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 16}
	margins := []float64{5, 10, 15, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110, 120, 140, 160}
	now := hayashibara(t, []float64{2, 8}, []float64{60})
	if *rewrite {
		now = hayashibara(t, thresholds, margins)
	}
	held := keepCurves(t, "phi.csv", now)
	phi, nfd := held["phi"], held["NFD-E"]
	require.Len(t, phi, len(thresholds))
	at := func(threshold float64) float64 { return phi[slices.Index(thresholds, threshold)].y }
	require.Greater(t, at(.5)/at(2), 10., "the delays")
	require.Less(t, at(5)/at(8), 2., "between")
	require.Greater(t, at(8)/at(14), 5., "a lost heartbeat")
	for _, p := range phi[1:] {
		i, _ := slices.BinarySearchFunc(nfd, p.x,
			func(q point, x float64) int { return cmp.Compare(q.x, x) })
		a, b := nfd[i-1], nfd[i]
		chens := a.y * math.Pow(b.y/a.y, (p.x-a.x)/(b.x-a.x))
		require.InDelta(t, 0, math.Log(p.y/chens), math.Log(1.7), "%v ms", p.x)
	}
}
