package detector

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The promise is kept on links of any quality on which heartbeats are independent, whatever the
// distribution of the delay. T_MR^L is short, so that mistakes can be counted.
func TestThePromiseIsKept(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	between := func(low, high float64) float64 { return low * math.Pow(high/low, rng.Float64()) }
	tried, mistakes := 0, 0
	for seed := range uint64(200) {
		mean := duration(between(0.0001, 0.1))
		link := Quality{Loss: between(0.001, 0.3), Delay: mean, Deviation: mean}
		w := newWire(seed, link)
		if seed%2 == 0 {
			w.stalls = between(0.01, 0.2)
			link.Deviation = time.Duration(float64(mean) * math.Sqrt(1/w.stalls-1))
		}
		ask := QoS{Detect: duration(between(0.1, 3)), Accuracy: 1 - between(0.001, 0.1)}
		ask.Mistakes = Recurrence(float64(ask.Detect) * between(2, 20))
		plan, err := Configure(ask, link, Limits{Shortest: ms, Longest: time.Minute})
		if err != nil {
			continue
		}
		var r record
		r.watch(NewNFDE(plan.Detection()), w, plan.Period, 200*time.Duration(ask.Mistakes))
		tried++
		mistakes += r.mistakes
		// 200 mistakes are allowed, and 3.5 deviations of such a count above.
		require.Less(t, r.mistakes, 250, "%d: %+v %+v %+v", seed, ask, link, r)
		require.Greater(t, r.accuracy(), ask.Accuracy-0.2*(1-ask.Accuracy), "%d: %+v %+v", seed, ask,
			link)
		// The mean of a window differs from the true one by a part of the deviation.
		require.Less(t, r.slowest(), ask.Detect+link.Deviation/2, "%d: %+v %+v", seed, ask, link)
	}
	require.Greater(t, tried, 40)
	require.Greater(t, mistakes, 250, "else the test could not fail")
}

// On an ordered link the promise is kept with the quality that Link measures, whether heartbeats
// are lost, stalled, or sent again later as over TCP.
func TestThePromiseIsKeptByWhatIsMeasured(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	between := func(low, high float64) float64 { return low * math.Pow(high/low, rng.Float64()) }
	kept, mistakes := 0, 0
	for seed := range uint64(150) {
		link := Quality{Loss: between(1e-4, 0.2), Delay: duration(between(1e-4, 0.05)), Ordered: true}
		stalls, resend := 0.0, time.Duration(0)
		switch seed % 3 {
		case 1:
			stalls = between(0.001, 0.2)
		case 2:
			resend = 200 * ms
		}
		wired := func(seed uint64) *wire {
			w := newWire(seed, link)
			w.stalls, w.resend = stalls, resend
			return w
		}
		ask := QoS{Detect: duration(between(0.1, 5)), Accuracy: 1 - between(0.001, 0.1)}
		ask.Mistakes = Recurrence(float64(ask.Detect) * between(2, 50))
		period, err := ask.Detect/12, error(nil)
		for range 3 { // how long heartbeats hold each other up depends on the period
			quality := measured(t, wired(seed), period, 20_000)
			var plan Plan
			limits := Limits{Shortest: ms, Longest: ask.Detect / 3}
			if plan, err = Configure(ask, quality, limits); err != nil {
				break
			}
			period = plan.Period
		}
		if err != nil {
			continue
		}
		var r record
		r.watch(NewNFDE(ask.Detect-link.Delay), wired(1000+seed), period, 200*time.Duration(ask.Mistakes))
		kept++
		mistakes += r.mistakes
		// 200 mistakes are allowed, and 3.5 deviations of such a count above.
		require.Less(t, r.mistakes, 250, "%d: %+v %+v %+v", seed, ask, link, r)
	}
	require.Greater(t, kept, 40)
	require.Greater(t, mistakes, 100, "else the test could not fail")
}
