package compare

import (
	"math/rand/v2"
	"slices"
)

// Estimate is a mean over the seeds and its interval of 95 %, by the bootstrap: the
// percentiles of the means of resampled runs. If a count was 0 in every run, High is three
// events in the whole time: the rule of three.
type Estimate struct{ Mean, Low, High float64 }

// resamples is how often runs are drawn anew.
const resamples = 1000

// Ratio computes the ratio of two sums over runs, with its interval: what was seen, and
// how long was looked. It draws the same numbers each time.
func Ratio(seen, looked []float64) Estimate {
	e := Estimate{Mean: ratio(sum(seen), sum(looked))}
	e.Low, e.High = e.Mean, e.Mean
	if slices.Min(seen) == slices.Max(seen) && slices.Min(looked) == slices.Max(looked) {
		return e
	}
	rng := rand.New(rand.NewPCG(1, uint64(len(seen))))
	means := make([]float64, resamples)
	for i := range means {
		s, l := 0., 0.
		for range seen {
			run := rng.IntN(len(seen))
			s, l = s+seen[run], l+looked[run]
		}
		means[i] = ratio(s, l)
	}
	slices.Sort(means)
	e.Low, e.High = means[resamples/40], means[resamples-1-resamples/40]
	return e
}

// Rate is the estimate of how often something happens.
func Rate(seen, looked []float64) Estimate {
	e := Ratio(seen, looked)
	if e.Mean == 0 {
		e.High = ratio(3, sum(looked))
	}
	return e
}

func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

func sum(all []float64) (s float64) {
	for _, x := range all {
		s += x
	}
	return s
}
