package sim_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/sim"
)

// TestLiveThroughOneHub is I5 at its narrowest: only one node that may stand is
// connected both ways with a quorum; any other link may be cut, either way.
func TestLiveThroughOneHub(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := drawAbleCluster(t)
		s := playAny(t, cfg, everything, 30)
		require.NoError(t, calm(s))
		other := leavesAlone(drawHub(t, cfg))
		for _, a := range s.Nodes() {
			for _, b := range s.Nodes() {
				if a != b && other(step{Do: "cut", A: a, B: b}) &&
					rapid.IntRange(0, 3).Draw(t, "way") > 0 {
					require.NoError(t, s.Cut(a, b))
				}
			}
		}
		requireLeaderWithin(t, s, hubBound(cfg))
	})
}

// hubBound is bound for a hub: a spoke that outranks it refuses while its own,
// hopeless round is open, so all of them must be between two rounds. Thirty
// times as many attempts as that takes on average leave a chance of e^-30.
func hubBound(cfg sim.Config) time.Duration {
	t := cfg.Nodes[0].Elector.Timing
	attempts := 30
	for range elector.Majority(len(cfg.Nodes[0].Elector.Voters)) - 1 {
		attempts *= 2 + int(2*t.ScoutingResult/t.MaxRandomWait)
	}
	return bound(cfg) + time.Duration(attempts)*(t.MaxRandomWait+t.ScoutingResult)
}

// drawHub draws a node that may stand, and then as many voters as it needs.
func drawHub(t *rapid.T, cfg sim.Config) []elector.NodeID {
	hub := rapid.SampledFrom(cfg.Nodes).Filter(electable).Draw(t, "hub").Elector.Self
	kept, voters := []elector.NodeID{hub}, cfg.Nodes[0].Elector.Voters
	for _, id := range rapid.Permutation(voters).Draw(t, "spokes") {
		if id != hub && len(kept) < elector.Majority(len(voters)) {
			kept = append(kept, id)
		}
	}
	return kept
}
