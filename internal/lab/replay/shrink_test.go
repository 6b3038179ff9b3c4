package replay

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// Losing a disk is the one thing that the protocol does not stand: a voter that
// forgot its vote gives it again, and two nodes lead in one term.
const forgottenVote = `
name: forgotten-vote
about: b votes for a, loses its disk, and votes for c in the same term
source: what the protocol asks of disks
nodes: [a, b, c, d]
elector: {quorum: 3}
duration: 120s
timeline:
  - {at: 0s, isolate: [d]}
  - {at: 1s, cut: [a->d]}
  - {at: 30s, partition: [[a], [b, c, d]]}
  - {at: 30s, crash: [b, c]}
  - {at: 31s, restart: [b, c], wipe: true}
  - {at: 90s, heal: all}
expect:
  - {from: 10s, leader_within: 20s}
`

func TestShrinkKeepsWhatBreaksAndNothingElse(t *testing.T) {
	sc := load(t, forgottenVote)
	for seed := uint64(1); seed < 200; seed++ {
		r, run, ok := Shrink(sc, seed)
		if !ok {
			continue
		}
		require.Contains(t, run.History.Broken[0], "I1 violated")
		require.Less(t, run.History.Duration, sc.Duration)
		require.NotEmpty(t, r.Drop, "healing in the end has nothing to do with it")
		again, broke := r.breaks(sc, seed)
		require.True(t, broke, "what is printed can be replayed")
		require.Equal(t, run.History.Broken, again.History.Broken)
		for _, step := range []int{1, 2, 3, 4, 5, 6} {
			_, broke := (Reduced{with(r.Drop, step), r.Without, r.Until}).breaks(sc, seed)
			require.True(t, !broke || slices.Contains(r.Drop, step), "step %d could be left out, too", step)
		}
		return
	}
	t.Fatal("no seed broke anything")
}

func TestShrinkOfAGoodRunSaysSo(t *testing.T) {
	_, run, ok := Shrink(load(t, pingPong), 1)
	require.False(t, ok)
	require.Empty(t, run.History.Broken)
}
