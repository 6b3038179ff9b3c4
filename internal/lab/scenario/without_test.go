package scenario

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestActionsWithoutNodesThatAreGone(t *testing.T) {
	ab, bc := Pair{"a", "b"}, Pair{"b", "c"}
	onLinks := func(do string, pairs ...Pair) Action { return Action{Do: do, Pairs: pairs} }
	onNodes := func(do string, nodes ...NodeID) Action { return Action{Do: do, Nodes: nodes} }
	for _, c := range []struct{ action, want Action }{
		{onLinks("cut", ab, bc), onLinks("cut", bc)},
		{onLinks("cut", ab), Action{}},
		{onLinks("reset", ab, bc), onLinks("reset", bc)},
		{Action{Do: "link", Pairs: []Pair{ab}, Link: Link{Loss: 7}}, Action{}},
		{
			Action{Do: "link", Pairs: []Pair{ab, bc}, Link: Link{Loss: 7}},
			Action{Do: "link", Pairs: []Pair{bc}, Link: Link{Loss: 7}},
		},
		{Action{Do: "heal", All: true}, Action{Do: "heal", All: true}},
		{onLinks("heal", ab), Action{}},
		{
			Action{Do: "partition", Groups: [][]NodeID{{"a", "b"}, {"c"}}},
			Action{Do: "partition", Groups: [][]NodeID{{"b"}, {"c"}}},
		},
		{
			Action{Do: "crash", Nodes: []NodeID{"a", "b"}, Unsynced: "lose"},
			Action{Do: "crash", Nodes: []NodeID{"b"}, Unsynced: "lose"},
		},
		{onNodes("restart", "a"), Action{}},
		{onNodes("pause", "a", "c"), onNodes("pause", "c")},
		{Action{Do: "transfer", To: "a"}, Action{}},
		{Action{Do: "transfer", To: "b"}, Action{Do: "transfer", To: "b"}},
		{Action{Do: "transfer"}, Action{Do: "transfer"}},
	} {
		got, ok := Without(c.action, []NodeID{"a"})
		require.Equal(t, c.want.Do != "", ok, c.action)
		if ok {
			require.Equal(t, c.want, got)
		}
	}
	both := onLinks("cut", ab, bc)
	Without(both, []NodeID{"a"})
	require.Equal(t, []Pair{ab, bc}, both.Pairs, "the action itself stays as it is")
}
