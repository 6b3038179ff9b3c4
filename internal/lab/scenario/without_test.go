package scenario

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestActionsWithoutNodesThatAreGone(t *testing.T) {
	ab, bc, bd := Pair{"a", "b"}, Pair{"b", "c"}, Pair{"b", "d"}
	cut := func(pairs ...Pair) Action { return Action{Do: "cut", Cut: pairs} }
	onNodes := func(do string, nodes ...NodeID) Action { return Action{Do: do, Nodes: nodes} }
	for _, c := range []struct{ action, want Action }{
		{cut(ab, bc), cut(bc)},
		{cut(ab), Action{}},
		{
			Action{Do: "reset", Reset: []Pair{ab, bc}, Cut: []Pair{ab, bc}},
			Action{Do: "reset", Reset: []Pair{bc}, Cut: []Pair{bc}},
		},
		{Action{Do: "link", Linked: []Pair{ab}, Link: Link{Loss: 7}}, Action{}},
		{
			Action{Do: "link", Linked: []Pair{ab, bc}, Link: Link{Loss: 7}},
			Action{Do: "link", Linked: []Pair{bc}, Link: Link{Loss: 7}},
		},
		{Action{Do: "heal", Heal: []Pair{ab}}, Action{}},
		{
			Action{Do: "partition", Cut: []Pair{ab, bc}, Heal: []Pair{bd}},
			Action{Do: "partition", Cut: []Pair{bc}, Heal: []Pair{bd}},
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
	both := cut(ab, bc)
	Without(both, []NodeID{"a"})
	require.Equal(t, []Pair{ab, bc}, both.Cut, "the action itself stays as it is")
}
