package elector

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestOneSlowVoterSlowsNobody: the unit of turns follows from the nearest majority, not from a
// voter that answers pings after seconds.
func TestOneSlowVoterSlowsNobody(t *testing.T) {
	for _, c := range []struct {
		voters int
		trips  []time.Duration
		want   time.Duration
	}{
		{3, nil, 0},
		{3, []time.Duration{0, 0}, 0},
		{3, []time.Duration{10 * time.Second, 4}, 4},
		{3, []time.Duration{0, 10 * time.Second}, 10 * time.Second},
		{5, []time.Duration{10 * time.Second, 4, 3}, 4},
		{5, []time.Duration{9, 7, 3, 5}, 5},
		{5, []time.Duration{9}, 9},
		{1, nil, 0},
	} {
		require.Equal(t, c.want, TripToMajority(c.trips, c.voters), "%d voters", c.voters)
	}
}
