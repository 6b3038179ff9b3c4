package pair_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/elector/pair"
)

// §16.4: an ack counts once all changes up to its revision were read, not after the first of them,
// and not before Count.
func TestAnAckWaitsForAllChangesUpToItsRevision(t *testing.T) {
	f, l := pair.NewFollower(), pair.NewLeader()
	joined, _ := f.Join("x", 1, false)
	also, _ := f.Join("y", 1, false)
	require.True(t, l.Read(joined))
	require.True(t, l.Read(also))
	left, _ := f.Leave("x")
	leftToo, _ := f.Leave("y")
	ack, _ := f.Beat(7, l.Beat(5, 1, 0))
	require.True(t, l.Acked(ack))
	require.Equal(t, elector.Time(5), l.Answered())
	for i, c := range []pair.Change{left, leftToo} {
		require.False(t, l.Waits())
		require.True(t, l.Read(c))
		require.Equal(t, i == 1, l.Waits())
		if i == 0 {
			l.Count()
		}
		require.Zero(t, l.Counted())
		require.Zero(t, l.Support("y", 1))
	}
	l.Count()
	require.Equal(t, elector.Time(5), l.Counted())
	require.False(t, l.Waits())
	require.Zero(t, l.Support("y", 0), "nobody follows it")
	require.False(t, l.Follows("y", 0))
}
