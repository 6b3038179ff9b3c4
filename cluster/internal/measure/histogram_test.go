package measure

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestValuesFallIntoTheirBuckets(t *testing.T) {
	h := NewHistogram(1, 2, 5)
	for _, v := range []float64{-1, 0, 1, 1.5, 2, 2.1, 5, 5.1, 1e9} {
		h.Observe(v)
	}
	s := h.Snapshot()
	require.Equal(t, []float64{1, 2, 5}, s.Bounds)
	require.Equal(t, []uint64{3, 2, 2, 2}, s.Counts, "a bound belongs to the bucket below it")
	require.Equal(t, uint64(9), s.Count())
	require.InDelta(t, 1e9+15.7, s.Sum, 1e-6)
}

func TestASnapshotStaysAsItIs(t *testing.T) {
	h := NewHistogram(1)
	before := h.Snapshot()
	h.Observe(3)
	require.Zero(t, before.Count())
	require.Zero(t, before.Sum)
}

func TestNothingIsLostBetweenObservers(t *testing.T) {
	h := NewHistogram(1, 2)
	var observers sync.WaitGroup
	for range 8 {
		observers.Go(func() {
			for range 1000 {
				h.Observe(1.5)
			}
		})
	}
	observers.Wait()
	require.Equal(t, []uint64{0, 8000, 0}, h.Snapshot().Counts)
	require.InDelta(t, 12_000, h.Snapshot().Sum, 1e-6)
}

func TestObservingTakesNoMemory(t *testing.T) {
	h := NewHistogram(1, 2)
	require.Zero(t, testing.AllocsPerRun(100, func() { h.Observe(1.5) }))
}

func BenchmarkObserve(b *testing.B) {
	h := NewHistogram(1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1)
	b.ReportAllocs()
	for b.Loop() {
		h.Observe(2e-4)
	}
}

// Count is the number of values.
func (s Snapshot) Count() (n uint64) {
	for _, c := range s.Counts {
		n += c
	}
	return n
}
