package elector

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/bmqelect/bmqelect/scouting"
)

// TestQuorumAtIsASort compares quorumAt with its definition: sort the acks, where the leader's own
// is the newest, and take the quorum-th newest.
func TestQuorumAtIsASort(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, scouting.MaxVoters).Draw(t, "voters")
		self := rapid.IntRange(0, n-1).Draw(t, "self")
		quorum := rapid.IntRange(1, n).Draw(t, "quorum")
		var s support
		sorted := []Time{Never} // the leader supports itself at any time
		for v := range n {
			s[v] = Time(rapid.IntRange(0, 9).Draw(t, "acked"))
			if v != self {
				sorted = append(sorted, s[v])
			}
		}
		slices.Sort(sorted)
		slices.Reverse(sorted)
		require.Equal(t, sorted[quorum-1], s.quorumAt(self, n, quorum))
	})
}

func TestAckKeepsTheNewest(t *testing.T) {
	m := &Machine{state: state{Common: Common{Now: 20}, By: make([]voterState, 2)}}
	require.True(t, m.ack(1, 10, 5))
	require.True(t, m.ack(1, 7, 5), "an older message is acked late")
	require.Equal(t, Time(10), m.state.By[1].Support)
	require.False(t, m.ack(1, 4, 5), "before the leadership")
	require.False(t, m.ack(1, 21, 5), "in the future")
	require.Equal(t, Time(10), m.state.By[1].Support)
}
