package compare

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// Of a hundred intervals of 95 %, about 95 contain the true value.
func TestTheIntervalHoldsTheMean(t *testing.T) {
	held := 0
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var seen, looked []float64
		for range 100 {
			seen, looked = append(seen, rng.ExpFloat64()), append(looked, 1)
		}
		e := Ratio(seen, looked)
		require.Less(t, e.Low, e.Mean)
		require.Less(t, e.Mean, e.High)
		if e.Low <= 1 && 1 <= e.High {
			held++
		}
	}
	require.InDelta(t, 188, held, 10, "of 200")
}

func TestAnEstimateIsARatio(t *testing.T) {
	e := Ratio([]float64{1, 3}, []float64{10, 10})
	require.InDelta(t, 0.2, e.Mean, 1e-9)
	require.Equal(t, e, Ratio([]float64{1, 3}, []float64{10, 10}), "the same each time")
	require.Equal(t, Estimate{0.5, 0.5, 0.5}, Ratio([]float64{1, 1}, []float64{2, 2}))
	require.Zero(t, Ratio([]float64{0}, []float64{0}))
}

// An event that was not seen in an hour happens less than three times an hour, at 95 %.
func TestWhatWasNotSeenMayHappen(t *testing.T) {
	e := Rate([]float64{0, 0}, []float64{0.5, 0.5})
	require.Equal(t, Estimate{0, 0, 3}, e)
	require.InDelta(t, 0.05, math.Exp(-e.High), 0.001)
	require.Less(t, Rate([]float64{1, 0}, []float64{0.5, 0.5}).High, 3.)
}
