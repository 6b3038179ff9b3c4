package detector

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The promise is kept on links of any quality, whatever the distribution of the delay,
// ordered or not, by the form of the bound that is for them. T_MR^L is short, so that
// mistakes can be counted.
func TestThePromiseIsKept(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	between := func(low, high float64) float64 { return low * math.Pow(high/low, rng.Float64()) }
	tried, mistakes := map[bool]int{}, map[bool]int{}
	for seed := range uint64(200) {
		mean := duration(between(0.0001, 0.1))
		link := Quality{Loss: between(0.001, 0.3), Delay: mean, Deviation: mean, Ordered: seed%2 == 1}
		w := newWire(seed, link)
		if seed%4 < 2 {
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
		tried[link.Ordered]++
		mistakes[link.Ordered] += r.mistakes
		// 200 mistakes are allowed, and 3.5 deviations of such a count above.
		require.Less(t, r.mistakes, 250, "%d: %+v %+v %+v", seed, ask, link, r)
		require.Greater(t, r.accuracy(), ask.Accuracy-0.2*(1-ask.Accuracy), "%d: %+v %+v", seed, ask,
			link)
		// The mean of a window is off by a part of the deviation; an ordered link queues.
		if !link.Ordered {
			require.Less(t, r.slowest(), ask.Detect+link.Deviation/2, "%d: %+v %+v", seed, ask, link)
		}
	}
	require.Greater(t, tried[false], 40)
	require.Greater(t, tried[true], 10)
	require.Greater(t, mistakes[false], 250, "else the test could not fail")
	require.Greater(t, mistakes[true], 100)
}

// On an ordered link the promise is kept by what Link measures there, whether heartbeats are
// lost, stalled, or come again later as over TCP.
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
			measured := Link{Ordered: true}
			for arrived := range wired(seed).deliveries(period, 20_000*period) {
				measured.Observe(arrived.at, arrived.hb)
			}
			measured.RoundTrip(2 * link.Delay)
			quality, isKnown := measured.Quality()
			require.True(t, isKnown)
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

// An ordered link breaks the promise of the independent form, where the delay is not small
// beside the period; so the form must be that of the link.
func TestOrderBreaksTheProductForm(t *testing.T) {
	for _, c := range []struct {
		detection, mean, asked time.Duration
		ordered                float64 // E(T_MR) that was measured, in seconds
	}{
		{300 * ms, 100 * ms, 100 * time.Second, 3.2},
		{900 * ms, 100 * ms, 1000 * time.Second, 660},
		{900 * ms, 10 * ms, 1000 * time.Second, 1686},
	} {
		link := Quality{Loss: 0.1, Delay: c.mean, Deviation: c.mean}
		ask := QoS{Detect: c.detection + c.mean, Mistakes: Recurrence(c.asked), Accuracy: 0.5}
		plan, err := Configure(ask, link, anyPeriod)
		require.NoError(t, err)
		var r, ordered record
		r.watch(NewNFDE(plan.Detection()), newWire(1, link), plan.Period, 100*c.asked)
		require.Less(t, r.mistakes, 100, "%+v", c)
		link.Ordered = true
		ordered.watch(NewNFDE(plan.Detection()), newWire(1, link), plan.Period, 100*c.asked)
		require.InEpsilon(t, c.ordered, ordered.recurrence(), 0.2, "%+v: %+v", c, ordered)
		// The form for such links says that it cannot be had with heartbeats of that kind.
		_, err = Configure(ask, link, anyPeriod)
		require.ErrorAs(t, err, new(*Infeasible))
	}
}

// TCP makes a delay of each loss: of 200 ms at least, which holds up all behind it.
func TestRetransmissionBreaksThePromise(t *testing.T) {
	link := Quality{Loss: 0.1, Delay: 10 * ms, Deviation: 10 * ms}
	ask := QoS{Detect: 160 * ms, Mistakes: Recurrence(1000 * time.Second), Accuracy: 0.5}
	plan, err := Configure(ask, link, anyPeriod)
	require.NoError(t, err)
	link.Ordered = true
	w := newWire(1, link)
	w.resend = 200 * ms
	var r record
	r.watch(NewNFDE(plan.Detection()), w, plan.Period, time.Hour)
	require.InDelta(t, 0.5, r.recurrence(), 0.2, "%+v", r)
}
