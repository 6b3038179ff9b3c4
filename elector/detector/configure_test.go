package detector

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The worked examples of the configurator. C1 to C3 are printed by [CTA], rounded down.
func TestConfiguratorVectors(t *testing.T) {
	for _, c := range []struct {
		name                             string
		t, recurrence, duration, loss, v float64
		gamma, longest, eta, margin      float64
		factors                          int
	}{
		{"C1", 29.98, 2592000, 60, 0.01, 0.02, 0.989977971, 29.98, 9.70980, 20.2702, 3},
		{"C2", 30, 2592000, 60, 0.01, 0.02, 0.989978000, 30, 9.71662, 20.2834, 3},
		{"C3 small V", 30, 2592000, 60, 0.01, 0.0004, 0.989999560, 30, 9.96122, 20.0388, 3},
		{"C4 LAN link", 1, 8640000, 1.0368, 1. / 128, 1e-6, 0.992186508, 1, 0.248942, 0.751058, 4},
		{"C5 10 ms, 1 %", 1, 8640000, 1.0368, 0.01, 1e-4, 0.989901010, 1, 0.228213, 0.771787, 4},
		{"C6 100 ms, 1 %", 1, 8640000, 1.0368, 0.01, 0.01, 0.980198020, 1, 0.132757, 0.867243, 7},
		{"C7 10 ms, 10 %", 1, 8640000, 1.0368, 0.1, 1e-4, 0.899910009, 0.933027, 0.118231, 0.881769,
			8},
		{"C8 100 ms, 10 %", 1, 8640000, 1.0368, 0.1, 0.01, 0.891089109, 0.923881, 0.0876934, 0.912307,
			11},
		{"C9 quiet LAN", 0.025, 86400, 0.0864, 1. / 256, 9e-8, 0.995950333, 0.025, 0.00619291,
			0.0188071, 4},
		{"C10 LAN, 2 ms", 0.025, 86400, 1, 1e-4, 4e-6, 0.993541335, 0.025, 0.00426778, 0.0207322, 5},
		{"C11 WAN, 30 ms", 1.5, 2592000, 2.592, 0.02, 9e-4, 0.979608157, 1.5, 0.292718, 1.20728, 5},
		{"C12", 0.5, 86400, 0.864, 0.1, 0.01, 0.865384615, 0.5, 0.0411713, 0.458829, 12},
		{"C13 T_M binds", 1, 1000, 0.05, 0.05, 0.01, 0.940594059, 0.0470297, 0.0470297, 0.952970, 21},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := problem{t: c.t, v: c.v, loss: c.loss, recurrence: c.recurrence, duration: c.duration,
				shortest: 1e-4, longest: 60}
			require.InDelta(t, c.gamma, p.gamma(), 1e-9)
			require.InEpsilon(t, c.longest, min(p.gamma()*p.duration, p.t), 1e-5)
			eta, ok := p.solve()
			require.True(t, ok)
			require.InEpsilon(t, c.eta, eta, 5e-6)
			require.InEpsilon(t, c.margin, p.t-eta, 5e-6)
			require.Equal(t, c.factors, int(math.Ceil(p.t/eta-1e-12))-1)
		})
	}
}

// If many heartbeats count, the bound is above the greatest float64, and so infinite.
func TestConfiguratorBoundsCanBeInfinite(t *testing.T) {
	p := problem{t: 1, v: 0.01, loss: 0.05, recurrence: 1000, duration: 0.05}
	require.InEpsilon(t, 2.22315e17, p.f(0.0470297, math.Inf(1)), 1e-5)
	require.Equal(t, math.Inf(1), p.f(1e-4, math.Inf(1)))
	require.Equal(t, Plan{Period: ms / 10, Margin: time.Second - ms/10, Recurrence: math.MaxInt64,
		Accuracy: 1, Duration: 106316}, p.plan(1e-4))
}

// The bound is not monotone in eta: a bisection would often stop at half of the longest period.
// Here a fine comb finds the longest period, and solve must return it.
func TestConfiguratorFindsTheLongestPeriod(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 5))
	between := func(low, high float64) float64 { return low * math.Pow(high/low, rng.Float64()) }
	notMonotone := 0
	for range 600 {
		p := problem{t: between(0.05, 10), v: square(between(0.001, 0.2)), loss: between(0.001, 0.3),
			recurrence: between(10, 1e7), shortest: 0.001, longest: 60}
		p.duration = p.recurrence * between(1e-7, 0.1)
		var want float64
		dips := 0
		for eta, kept := p.t, false; eta > p.shortest; eta *= 0.9995 {
			if keeps := p.keeps(eta); keeps != kept {
				kept = keeps
				dips++
				want = max(want, eta)
			}
		}
		if dips > 1 {
			notMonotone++
		}
		got, ok := p.solve()
		require.Equal(t, want > 0, ok, "%+v", p)
		require.GreaterOrEqual(t, got, want*0.99, "%+v", p)
	}
	require.Greater(t, notMonotone, 5)
}

var (
	// dailyMistake asks for a detection in one second, and for a mistake a day.
	dailyMistake = QoS{Detect: time.Second, Mistakes: Recurrence(day), Accuracy: 0.99999}
	anyPeriod    = Limits{Shortest: time.Millisecond, Longest: time.Minute}
)

func TestInfeasible(t *testing.T) {
	p := problem{t: 0.1, v: 0.01, loss: 0.1, recurrence: 86400, duration: 0.864, longest: 1}
	for _, c := range []struct{ shortest, recurrence, detect float64 }{
		{0.005, 0.381928, 0.172239},
		{0.01, 0.0756515, 0.235007},
	} {
		p.shortest = c.shortest
		_, ok := p.solve()
		require.False(t, ok)
		e := p.infeasible(time.Second)
		require.Equal(t, "mistakes", e.Violated)
		require.InDelta(t, c.shortest, e.Best.Period.Seconds(), 1e-9)
		require.InDelta(t, 0.1-c.shortest, e.Best.Margin.Seconds(), 1e-9)
		require.InEpsilon(t, c.recurrence, e.Best.Recurrence.Seconds(), 1e-5)
		require.InDelta(t, max(1-c.shortest/c.recurrence, 0), e.Best.Accuracy, 1e-5)
		require.InDelta(t, c.detect, e.Detect.Seconds()-1, 1e-6)
		require.InDelta(t, 0.00126267, e.Period.Seconds(), 1e-8)
	}
	p.t = -0.5
	e := p.infeasible(600 * ms)
	require.Equal(t, "detect", e.Violated)
	require.Zero(t, e.Best)
	require.InDelta(t, 0.6+0.235007, e.Detect.Seconds(), 1e-6)
	require.Zero(t, e.Period)
}

// The text names the bound that cannot be met, and figures that can.
func TestInfeasibleText(t *testing.T) {
	link := Quality{Loss: 0.1, Delay: ms, Deviation: 100 * ms}
	limits := Limits{Shortest: 5 * ms, Longest: time.Second}
	detect := QoS{Detect: 101 * ms, Mistakes: Recurrence(day), Duration: 864 * ms}
	for name, c := range map[string]struct {
		ask  QoS
		link Quality
		want string
	}{
		"mistakes": {detect, link, "qos: mistakes cannot be met on this link; with the same detect: " +
			"a mistake every 381ms, accuracy 0.9869085, period 5ms; " +
			"with the same mistakes and accuracy: detect 174ms; or with a period of 1.26ms"},
		"detect": {QoS{Detect: ms, Mistakes: Recurrence(day), Duration: 864 * ms}, link,
			"qos: detect cannot be met on this link; with the same mistakes and accuracy: detect 174ms"},
		"accuracy": {QoS{Detect: time.Second, Mistakes: Recurrence(time.Minute), Duration: 3 * ms}, link,
			"qos: accuracy cannot be met on this link; with the same detect: a mistake every "},
	} {
		_, err := Configure(c.ask, c.link, limits)
		require.ErrorContains(t, err, c.want, name)
	}
}

// TestOrderedBound: eta x alpha^2/V(D).
func TestOrderedBound(t *testing.T) {
	p := problem{t: 0.3, v: 0.01, ordered: true}
	require.InEpsilon(t, 0.1*0.2*0.2/0.01, p.f(0.1, 0), 1e-9)
}

func BenchmarkConfigure(b *testing.B) {
	limits := Limits{Shortest: 5 * ms, Longest: time.Minute}
	for name, link := range map[string]Quality{
		"lan":                {Loss: 0.01, Delay: ms, Deviation: ms},
		"wan":                {Loss: 0.1, Delay: 100 * ms, Deviation: 100 * ms},
		"ordered":            {Loss: 1e-7, Delay: ms, Deviation: ms / 2, Ordered: true},
		"infeasible":         {Loss: 0.5, Delay: 900 * ms, Deviation: time.Second},
		"infeasible ordered": {Loss: 0.01, Delay: ms, Deviation: 2 * ms, Ordered: true},
	} {
		b.Run(name, func(b *testing.B) {
			_, err := Configure(dailyMistake, link, limits)
			require.Equal(b, strings.HasPrefix(name, "infeasible"), err != nil, "%v", err)
			b.ReportAllocs()
			for b.Loop() {
				Configure(dailyMistake, link, limits)
			}
		})
	}
}
