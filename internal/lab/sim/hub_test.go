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
		spokes := drawHub(t, cfg)
		for _, l := range otherLinks(s, spokes) {
			if rapid.IntRange(0, 3).Draw(t, "way") > 0 {
				require.NoError(t, s.Cut(l.from, l.to))
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
	var able []elector.NodeID
	for _, n := range cfg.Nodes {
		if !n.Elector.Observer() && !n.Elector.NotCandidate {
			able = append(able, n.Elector.Self)
		}
	}
	hub := []elector.NodeID{rapid.SampledFrom(able).Draw(t, "hub")}
	voters := cfg.Nodes[0].Elector.Voters
	for _, id := range rapid.Permutation(voters).Draw(t, "spokes") {
		if id != hub[0] && len(hub) < elector.Majority(len(voters)) {
			hub = append(hub, id)
		}
	}
	return hub
}

type way struct{ from, to elector.NodeID }

// otherLinks are all directions but those between the hub and its spokes.
func otherLinks(s *sim.Sim, hub []elector.NodeID) []way {
	spares := leavesAlone(hub)
	var ways []way
	for _, a := range s.Nodes() {
		for _, b := range s.Nodes() {
			if a != b && spares(step{Do: "cut", A: a, B: b}) {
				ways = append(ways, way{a, b})
			}
		}
	}
	return ways
}

// TestLiveWhereTheOldLeaderKeepsALink: the leader loses its quorum but goes on
// talking to one of the nodes that must elect the next.
func TestLiveWhereTheOldLeaderKeepsALink(t *testing.T) {
	for seed := range uint64(20) {
		cfg := cluster(seed, 5)
		cfg.Begin = sim.Begin{Leader: "a", Term: 7}
		s := start(t, cfg)
		for _, id := range []elector.NodeID{"c", "d", "e"} {
			require.NoError(t, s.Cut("a", id))
			require.NoError(t, s.Cut(id, "a"))
		}
		require.NoError(t, s.RunFor(5*time.Second))
		requireLeaderWithin(t, s, 30*time.Second)
		require.NotEqual(t, elector.NodeID("a"), leader(t, s))
	}
}
