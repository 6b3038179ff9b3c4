package scouting_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/bmqelect/bmqelect/scouting"
)

// TestVotersIsASet compares Voters with a map under any additions and removals.
func TestVotersIsASet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var v scouting.Voters
		model := map[int]bool{}
		for range rapid.IntRange(0, 100).Draw(t, "steps") {
			i := rapid.IntRange(0, scouting.MaxVoters-1).Draw(t, "voter")
			if rapid.Bool().Draw(t, "add") {
				v, model[i] = v.With(i), true
			} else {
				v = v.Without(i)
				delete(model, i)
			}
			require.Equal(t, model[i], v.Has(i))
			require.Equal(t, len(model), v.Count())
		}
	})
}

func TestRankCompare(t *testing.T) {
	ascending := []scouting.Rank{
		{Priority: -1, Node: "z"},
		{Node: "a"},
		{Node: "b"},
		{Node: "b10"},
		{Priority: 3, Node: "a"},
	}
	for i, r := range ascending {
		for j, o := range ascending {
			switch {
			case i < j:
				require.Negative(t, r.Compare(o), "%v and %v", r, o)
			case i > j:
				require.Positive(t, r.Compare(o), "%v and %v", r, o)
			default:
				require.Zero(t, r.Compare(o), "%v and %v", r, o)
			}
		}
	}
}
