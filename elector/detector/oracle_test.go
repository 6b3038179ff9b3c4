package detector

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// A tail is P(D > x) of a delay, in seconds.
type tail func(x float64) float64

func exponential(mean float64) tail {
	return func(x float64) float64 { return math.Exp(-max(x, 0) / mean) }
}

// nfds is NFD-S of [CTA] on a link whose delay is known: the oracle of its Theorem 5.
type nfds struct {
	eta, delta, loss float64
	late             tail
}

// u is the probability that x after a freshness point no heartbeat has come that would give trust.
func (d nfds) u(x float64) float64 {
	u := 1.0
	for j := 0.0; j <= math.Ceil(d.delta/d.eta-1e-12); j++ {
		u *= d.loss + (1-d.loss)*d.late(d.delta+x-j*d.eta)
	}
	return u
}

// exact returns E(T_MR), E(T_M) and P_A. The integral is Simpson's, on both sides of the kink
// where the last heartbeat can have come.
func (d nfds) exact() (recurrence, duration, accuracy float64) {
	q0 := (1 - d.loss) * (1 - d.late(d.delta+d.eta))
	pS := q0 * d.u(0)
	kink := math.Ceil(d.delta/d.eta-1e-12)*d.eta - d.delta
	wrong := simpson(d.u, 0, kink) + simpson(d.u, kink, d.eta)
	return d.eta / pS, wrong / pS, 1 - wrong/d.eta
}

func simpson(f func(float64) float64, from, to float64) float64 {
	const steps = 2000
	h := (to - from) / steps
	sum := f(from+h*1e-9) + f(to-h*1e-9)
	for i := 1; i < steps; i++ {
		sum += float64(2+2*(i%2)) * f(from+float64(i)*h)
	}
	return sum * h / 3
}

// exactRows are links with an exponential delay on which NFD-S is known to make mistakes as
// often as the figures say.
var exactRows = []struct {
	eta, delta, loss, mean         float64
	recurrence, duration, accuracy float64
	bound                          float64 // eta/beta: what can be promised of any distribution
}{
	{1, 0.5, 0.01, 0.02, 101.010, 0.530101, 0.994752, 85.355},
	{1, 1, 0.01, 0.02, 101.010, 0.030101, 0.999702, 96.042},
	{1, 1.05, 0.01, 0.02, 1106.79, 0.1252, 0.99988688, 306.42},
	{1, 2, 0.01, 0.02, 10101.0, 0.030101, 0.99999702, 9508.1},
	{0.1, 0.25, 0.1, 0.1, 3.39141, 0.0510492, 0.984947493, 0.32354},
	{0.1, 0.3, 0.1, 0.01, 111.066, 0.0211045, 0.999809982, 86.994},
	{0.02, 0.05, 0.02, 0.01, 29.3328, 0.0055174, 0.999811903, 1.1925},
	{0.1, 0.45, 0.1, 0.1, 236.073, 0.0457485, 0.999806211, 8.5961},
}

func TestExactQuality(t *testing.T) {
	for _, row := range exactRows {
		d := nfds{row.eta, row.delta, row.loss, exponential(row.mean)}
		recurrence, duration, accuracy := d.exact()
		require.InEpsilon(t, row.recurrence, recurrence, 1e-5, "%+v", row)
		require.InEpsilon(t, row.duration, duration, 1e-4, "%+v", row)
		require.InDelta(t, row.accuracy, accuracy, 1e-6, "%+v", row)
	}
}

// The promise without the distribution is never more than the exact value.
func TestTheBoundIsBelowTheExactValue(t *testing.T) {
	for _, row := range exactRows {
		p := problem{t: row.delta - row.mean + row.eta, v: row.mean * row.mean, loss: row.loss}
		bound := p.f(row.eta, math.Inf(1))
		require.InEpsilon(t, row.bound, bound, 1e-4, "%+v", row)
		require.Less(t, bound, row.recurrence)
	}
}
