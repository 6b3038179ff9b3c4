package measure

import (
	"math"
	"slices"
	"sync/atomic"
)

// Histogram counts values in fixed buckets. It is safe for concurrent use; a concurrent snapshot
// may lack one value in its sum.
type Histogram struct {
	bounds []float64
	counts []atomic.Uint64 // one more than bounds: the last is for what is above all
	sum    atomic.Uint64   // bits of a float64
}

// NewHistogram returns an empty histogram. A bucket holds the values up to its bound that are above
// the bound before. The bounds must be finite and rise strictly.
func NewHistogram(bounds ...float64) *Histogram {
	return &Histogram{bounds: slices.Clone(bounds), counts: make([]atomic.Uint64, len(bounds)+1)}
}

// Observe counts v, which must be a number.
func (h *Histogram) Observe(v float64) {
	// With few buckets and mostly small values a loop beats a binary search.
	i := 0
	for i < len(h.bounds) && v > h.bounds[i] {
		i++
	}
	h.counts[i].Add(1)
	for {
		old := h.sum.Load()
		if h.sum.CompareAndSwap(old, math.Float64bits(math.Float64frombits(old)+v)) {
			return
		}
	}
}

// Snapshot is the content of a histogram at one moment.
type Snapshot struct {
	Bounds []float64 // upper bounds of the buckets, inclusive, rising
	Counts []uint64  // by bucket; one more than Bounds: the last is for what is above all
	Sum    float64   // of all values
}

// Snapshot returns the present counts.
func (h *Histogram) Snapshot() Snapshot {
	s := Snapshot{Bounds: slices.Clone(h.bounds), Counts: make([]uint64, len(h.counts)),
		Sum: math.Float64frombits(h.sum.Load())}
	for i := range h.counts {
		s.Counts[i] = h.counts[i].Load()
	}
	return s
}
