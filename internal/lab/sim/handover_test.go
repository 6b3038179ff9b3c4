package sim_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/sim"
)

// spoke is an established cluster of five that a leads, and in which e reaches
// only a.
func spoke(seed uint64) sim.Config {
	cfg := cluster(seed, 5)
	cfg.Begin = sim.Begin{Leader: "a", Term: 7}
	return cfg
}

// cutSpoke cuts e off from all except a.
func cutSpoke(t *testing.T, s *sim.Sim) {
	for _, id := range names(4)[1:] {
		sever(t, s, id, "e")
	}
	require.NoError(t, s.RunFor(time.Second))
}

func TestTransferToANodeThatCannotWinLeavesTheLeaderInPlace(t *testing.T) {
	for seed := range uint64(20) {
		cfg := spoke(seed)
		watch := watchLeaders(&cfg)
		s := start(t, cfg)
		cutSpoke(t, s)
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

// TestTakeoverOfANodeThatCannotWin: where only a may lead instead, it does so
// undisturbed.
func TestTakeoverOfANodeThatCannotWin(t *testing.T) {
	cfg := preferring(spoke(1))
	watch := watchLeaders(&cfg)
	s := start(t, cfg)
	cutSpoke(t, s)
	watch.unseated = ""
	require.NoError(t, s.RunFor(10*time.Minute))
	require.Empty(t, watch.unseated)
}

// TestFailedTakeoverIsTriedRarely: the links of e are up, but what it sends to
// others than a is lost, so that nobody can know that it cannot win. Ten minutes
// have room for twenty attempts; doubling the wait leaves five at most.
func TestFailedTakeoverIsTriedRarely(t *testing.T) {
	cfg := preferring(spoke(1))
	watch := watchTakeovers(&cfg, 30*time.Second)
	s := start(t, cfg)
	for _, id := range names(4)[1:] {
		require.NoError(t, s.SetFaults("e", id, sim.Faults{Delay: time.Millisecond, LossPPM: 1_000_000}))
	}
	require.NoError(t, s.RunFor(10*time.Minute))
	require.InDelta(t, 3, watch.count, 2)

	for _, id := range names(4)[1:] {
		require.NoError(t, s.SetFaults("e", id, sim.Faults{Delay: time.Millisecond}))
	}
	require.NoError(t, s.RunFor(20*time.Minute))
	require.Equal(t, elector.NodeID("e"), leader(t, s),
		"it is tried again within the time that the fault lasted")
}

// preferring makes e the preferred node and a the only other candidate.
func preferring(cfg sim.Config) sim.Config {
	for i := range cfg.Nodes {
		e := &cfg.Nodes[i].Elector
		e.Takeover = 30 * time.Second
		e.NotCandidate = e.Self != "a" && e.Self != "e"
		if e.Self == "e" {
			e.Priority = 1
		}
	}
	return cfg
}
