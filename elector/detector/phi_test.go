package detector

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const ms = time.Millisecond

func TestPhiNormal(t *testing.T) {
	for y, want := range map[float64]float64{
		-1: 0.075026, 0: 0.301030, 1: 0.799546, 2: 1.643016, 3: 2.869699, 4: 4.499335, 5: 6.542646,
		6: 9.005864, 8: 15.206143, 10: 23.118053, 20: 88.560095, 40: 349.437006,
	} {
		require.InEpsilon(t, want, phiNormal(y), 1e-5, "y %v", y)
	}
	require.InEpsilon(t, phiNormal(37), phiNormal(math.Nextafter(37, 38)), 1e-8, "the two forms meet")
}

func TestNormalQuantile(t *testing.T) {
	for phi, want := range map[float64]float64{
		1: 1.281552, 2: 2.326348, 3: 3.090232, 5: 4.264891, 8: 5.612001, 10: 6.361341,
		12: 7.034484, 16: 8.222082,
	} {
		require.InDelta(t, want, normalQuantile(phi), 1e-6, "phi %v", phi)
	}
	require.InDelta(t, 100, phiNormal(normalQuantile(100)), 1e-9)
	require.InDelta(t, 0.1, phiNormal(normalQuantile(0.1)), 1e-9)
}

// The figures are those that users of other systems know, for a mean of 1 s and a deviation of
// 100 ms.
func TestSuspicion(t *testing.T) {
	p, err := NewPhi(PhiConfig{Threshold: 8, Window: 2, MinDeviation: 100 * ms})
	require.NoError(t, err)
	require.Zero(t, p.Suspicion(time.Hour), "nobody was heard of yet")
	hb := Heartbeat{Period: time.Second}
	for i := range 4 { // the invented intervals leave the window
		hb.Number++
		hb.Scheduled = time.Duration(i) * time.Second
		p.Observe(hb.Scheduled, hb)
	}
	for since, want := range map[time.Duration]float64{
		500 * ms: 0, 1000 * ms: 0.3, 1200 * ms: 1.6, 1400 * ms: 4.5, 1600 * ms: 9, 1700 * ms: 11.9,
	} {
		require.InDelta(t, want, p.Suspicion(3*time.Second+since), 0.1, since)
	}
}

func TestPhiDeadlines(t *testing.T) {
	p, err := NewPhi(PhiConfig{Threshold: 8, Window: 4, MinDeviation: 10 * ms, Pause: 300 * ms})
	require.NoError(t, err)
	after := func(mean, deviation float64) time.Duration { // in ms
		return time.Duration((mean + 300 + 5.612001*deviation) * 1e6)
	}
	for _, step := range []struct {
		name     string
		number   uint64
		at       time.Duration
		period   time.Duration
		deadline time.Duration
		held     bool
	}{
		{"75 ms and 125 ms are invented", 1, 0, 100 * ms, after(100, 25), false},
		{"100 ms is learnt", 2, 100 * ms, 100 * ms, 100*ms + after(100, math.Sqrt(1250./3)), false},
		{"a duplicate says nothing", 2, 150 * ms, 100 * ms, 100*ms + after(100, math.Sqrt(1250./3)),
			false},
		{"the window is full", 3, 200 * ms, 100 * ms, 200*ms + after(100, math.Sqrt(1250./4)), false},
		{"75 ms leaves", 4, 300 * ms, 100 * ms, 300*ms + after(106.25, math.Sqrt(117.1875)), false},
		{"125 ms leaves; at least 10 ms", 5, 400 * ms, 100 * ms, 400*ms + after(100, 10), false},
		{"an outage is no interval", 9, 9000 * ms, 100 * ms, 9000*ms + after(100, 10), false},
		{"a loss is one", 11, 9200 * ms, 100 * ms, 9200*ms + after(125, math.Sqrt(1875)), false},
		{"this node was held up", 12, 9400 * ms, 100 * ms, 9400*ms + after(125, math.Sqrt(1875)), true},
		{"nor is this one regular", 13, 9401 * ms, 100 * ms, 9401*ms + after(125, math.Sqrt(1875)),
			false},
		{"a new period begins again", 14, 9500 * ms, 200 * ms, 9500*ms + after(200, 50), false},
	} {
		got := p.Observe(step.at, Heartbeat{Number: step.number, Period: step.period, Held: step.held})
		require.InDelta(t, step.deadline, got, float64(time.Microsecond), step.name)
		require.Less(t, p.Suspicion(got-1), 8.0)
		require.InDelta(t, 8.0, p.Suspicion(got), 1e-3)
	}
}

// After a million intervals, of which some are long, no rounding error has grown.
func TestPhiSumsAreThoseOfTheWindow(t *testing.T) {
	p, err := NewPhi(PhiConfig{Threshold: 8, Window: 200, MinDeviation: 1, Pause: day})
	require.NoError(t, err)
	rng := rand.New(rand.NewPCG(1, 1))
	now, window := time.Duration(0), []float64(nil)
	for i := range 1_000_000 {
		interval := time.Duration(rng.Uint64N(uint64(time.Second)) + 5)
		if i%1000 == 0 {
			interval = time.Hour
		}
		now += interval
		p.Observe(now, Heartbeat{Number: uint64(i) + 1, Period: time.Second})
		window = append(window, interval.Seconds())
	}
	window = window[len(window)-200:]
	sum, squares := 0.0, 0.0
	for _, x := range window {
		sum += x
	}
	for _, x := range window {
		squares += square(x - sum/200)
	}
	mean, deviation := p.moments()
	require.InEpsilon(t, sum/200, mean/1e9, 1e-9)
	require.InEpsilon(t, math.Sqrt(squares/200), deviation/1e9, 1e-9)
}

// Equal intervals have no variance, however long they are.
func TestPhiOfLongEqualIntervals(t *testing.T) {
	p, err := NewPhi(PhiConfig{Threshold: 8, Window: 10_000, MinDeviation: 1})
	require.NoError(t, err)
	p.begin(day)
	for range 20_000 {
		p.learn(longestInterval - 1)
	}
	mean, deviation := p.moments()
	require.Equal(t, float64(longestInterval-1), mean)
	require.Equal(t, 1.0, deviation)
}

func TestPhiConfigIsChecked(t *testing.T) {
	good := PhiConfig{Threshold: 8, Window: 200, MinDeviation: 100 * ms}
	_, err := NewPhi(good)
	require.NoError(t, err)
	for want, change := range map[string]func(*PhiConfig){
		"threshold is 0, but must be above 0 and at most 100": func(c *PhiConfig) { c.Threshold = 0 },
		"threshold is NaN": func(c *PhiConfig) { c.Threshold = math.NaN() },
		"window is 1, but must be between 2 and 10000":                  func(c *PhiConfig) { c.Window = 1 },
		"min-deviation is 0s, but must be above 0s and at most 24h0m0s": func(c *PhiConfig) { c.MinDeviation = 0 },
		"pause is -1ns, but must be between 0s and 24h0m0s":             func(c *PhiConfig) { c.Pause = -1 },
	} {
		c := good
		change(&c)
		_, err := NewPhi(c)
		require.ErrorContains(t, err, want)
	}
}

// Fields that are left out follow from the leader's timers. Nobody is suspected within the lease.
func TestPhiDefaults(t *testing.T) {
	const us = time.Microsecond
	for text, want := range map[string]PhiConfig{
		"":                       {},
		"{}":                     {8, 200, 50 * ms, 1119400 * us},
		"{pause: 0s}":            {8, 200, 50 * ms, 1119400 * us},
		"threshold: 12":          {12, 200, 50 * ms, 1048276 * us},
		"min-deviation: 300ms":   {8, 200, 300 * ms, 0}, // 1684 ms
		"{window: 9; pause: 2s}": {8, 9, 50 * ms, 2 * time.Second},
		ExamplePhi:               {8, 200, 100 * ms, time.Second},
	} {
		var read, again PhiConfig
		require.NoError(t, read.UnmarshalText([]byte(text)), text)
		require.NoError(t, again.UnmarshalText([]byte(read.String())), text)
		require.Equal(t, read, again)
		got := read.WithDefaults(500*ms, 1400*ms)
		require.InDelta(t, want.Pause, got.Pause, float64(us), text)
		want.Pause = got.Pause
		require.Equal(t, want, got, text)
		require.True(t, text == "" || got.Least() >= 1400*ms, text)
		require.NoError(t, again.UnmarshalText([]byte(got.String())), text)
		require.Equal(t, got, again, "so it is recorded")
	}
	for text, want := range map[string]string{
		"treshold: 8":          `"treshold" is no field: there are threshold, window, min-deviation, pause`,
		"threshold: high":      `threshold is "high", but must be written as in threshold: 8, window`,
		"window: 1.5":          `window is "1.5", but must be`,
		"pause: 3":             `pause is "3", but must be`,
		"window: 5, window: 5": `window is "5", but must be written as in threshold: 8, window: 200, min-d`,
	} {
		c := PhiConfig{Window: 7}
		require.ErrorContains(t, c.UnmarshalText([]byte(text)), want)
		require.Equal(t, PhiConfig{Window: 7}, c, "unchanged")
	}
}

func FuzzPhiText(f *testing.F) {
	f.Add(ExamplePhi)
	f.Add("{pause: 1h; threshold: 1e300}")
	f.Fuzz(func(t *testing.T, text string) {
		var c, again PhiConfig
		if c.UnmarshalText([]byte(text)) != nil {
			return
		}
		c.WithDefaults(time.Second, time.Hour).Check()
		require.NoError(t, again.UnmarshalText([]byte(c.String())))
		require.Equal(t, c.String(), again.String())
	})
}
