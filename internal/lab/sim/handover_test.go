package sim_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/sim"
)

// Node e reaches only a, which leads.
func TestTransferToANodeThatCannotWinLeavesTheLeaderInPlace(t *testing.T) {
	for seed := range uint64(20) {
		cfg := led(seed, 5)
		watch := watchLeaders(&cfg)
		s := start(t, cfg)
		sever(t, s, "e", "b", "c", "d")
		require.NoError(t, s.RunFor(time.Second))
		watch.unseated = ""
		require.ErrorContains(t, s.Transfer("a", "e"),
			"it is connected to too few voters to win an election")
		require.NoError(t, s.RunFor(10*time.Second))
		require.Empty(t, watch.unseated)

		require.NoError(t, s.Stop("a"))
		require.NoError(t, s.RunFor(time.Second))
		require.Contains(t, []elector.NodeID{"b", "c", "d"}, leader(t, s),
			"the successor is one that can win")
	}
}

// TestFailedTakeoverIsTriedRarely: e is the preferred node, and a the only other candidate. The
// links of e are up, but what it sends to others than a is lost, so that nobody can know that it
// cannot win. Ten minutes have room for twenty attempts; doubling the wait leaves five at most.
func TestFailedTakeoverIsTriedRarely(t *testing.T) {
	cfg := led(1, 5)
	for i := range cfg.Nodes {
		e := &cfg.Nodes[i].Elector
		e.Takeover = 30 * time.Second
		e.NotCandidate = i != 0 && i != 4
		e.Priority = i / 4
	}
	watch := watchTakeovers(&cfg, 30*time.Second)
	s := start(t, cfg)
	lose := func(ppm int) {
		for _, id := range []elector.NodeID{"b", "c", "d"} {
			require.NoError(t, s.SetFaults("e", id, sim.Faults{Delay: ms, LossPPM: ppm}))
		}
	}
	lose(1_000_000)
	require.NoError(t, s.RunFor(10*time.Minute))
	require.InDelta(t, 3, watch.count, 2)

	lose(0)
	require.NoError(t, s.RunFor(20*time.Minute))
	require.Equal(t, elector.NodeID("e"), leader(t, s),
		"it is tried again within the time that the fault lasted")
}
