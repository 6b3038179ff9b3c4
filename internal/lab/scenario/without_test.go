package scenario

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestActionsWithoutNodesThatAreGone(t *testing.T) {
	ab, bc := Pair{"a", "b"}, Pair{"b", "c"}
	gone := []NodeID{"a"}
	for _, c := range []struct{ action, want Action }{
		{Cut{[]Pair{ab, bc}}, Cut{[]Pair{bc}}},
		{Cut{[]Pair{ab}}, nil},
		{Reset{[]Pair{ab, bc}}, Reset{[]Pair{bc}}},
		{SetLink{Pairs: []Pair{ab}}, nil},
		{SetLink{Pairs: []Pair{bc}, Link: Link{Loss: 7}}, SetLink{Pairs: []Pair{bc}, Link: Link{Loss: 7}}},
		{Heal{All: true}, Heal{All: true, Pairs: []Pair{}}},
		{Heal{Pairs: []Pair{ab}}, nil},
		{Partition{[][]NodeID{{"a", "b"}, {"c"}}}, Partition{[][]NodeID{{"b"}, {"c"}}}},
		{Crash{Nodes: []NodeID{"a", "b"}, Lose: true}, Crash{Nodes: []NodeID{"b"}, Lose: true}},
		{Crash{Nodes: gone}, nil},
		{Restart{Nodes: gone, Wipe: true}, nil},
		{Pause{[]NodeID{"a", "c"}}, Pause{[]NodeID{"c"}}},
		{Resume{gone}, nil},
		{Stop{[]NodeID{"b"}}, Stop{[]NodeID{"b"}}},
		{StepDown{[]NodeID{"a", "b"}, 7}, StepDown{[]NodeID{"b"}, 7}},
		{StepDown{Nodes: gone}, nil},
		{Fitness{[]NodeID{"a", "b"}, true}, Fitness{[]NodeID{"b"}, true}},
		{Fitness{Nodes: gone}, nil},
		{Transfer{"a"}, nil},
		{Transfer{"b"}, Transfer{"b"}},
		{Transfer{}, Transfer{}},
	} {
		got := Without(c.action, gone)
		if heal, ok := got.(Heal); ok && heal.Pairs == nil {
			heal.Pairs = []Pair{}
			got = heal
		}
		require.Equal(t, c.want, got)
	}
	both := []Pair{ab, bc}
	Without(Cut{both}, gone)
	require.Equal(t, []Pair{ab, bc}, both, "the action itself stays as it is")
}
