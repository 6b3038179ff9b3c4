package sim_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/sim"
)

func ids(names ...elector.NodeID) []elector.NodeID { return names }

// asked asks, and returns what came of it within d.
func asked(t *testing.T, s *sim.Sim, what sim.Ask, d time.Duration) error {
	t.Helper()
	answer := error(nil)
	require.NoError(t, s.Ask(what, func(err error) { answer = err }))
	require.NoError(t, s.RunFor(d))
	return answer
}

// TestAValueOutlivesItsLeader: the next leader shows it, and a node that starts does not before a
// leader has named it.
func TestAValueOutlivesItsLeader(t *testing.T) {
	for seed := range uint64(20) {
		s := start(t, led(seed, 3))
		require.NoError(t, asked(t, s, sim.Ask{Value: "one"}, time.Second))
		require.Equal(t, sim.ValueOf("one").Hash, s.View("b").Record.Committed.Value.Hash)
		require.NoError(t, s.Crash("a", sim.Crash{Unsynced: sim.UnsyncedLost, Silent: true}))
		require.NoError(t, s.Crash("c", sim.Crash{}))
		require.NoError(t, s.Restart("c"))
		require.Zero(t, s.View("c").Record.Committed)
		require.NoError(t, s.RunFor(20*time.Second))
		for _, id := range []elector.NodeID{"b", "c"} {
			require.Equal(t, sim.ValueOf("one").Hash, s.View(id).Record.Committed.Value.Hash)
		}
	}
}

// TestNodesTakeThePlaceOfVoters: an observer becomes a voter, and a machine with an empty disk
// takes the place of the one before it.
func TestNodesTakeThePlaceOfVoters(t *testing.T) {
	for seed := range uint64(20) {
		cfg := led(seed, 3)
		newcomer := cfg.Nodes[2]
		newcomer.Elector.Self, newcomer.Elector.Voters = "d", nil
		cfg.Nodes = append(cfg.Nodes, newcomer)
		s := start(t, cfg)
		require.NoError(t, asked(t, s, sim.Ask{Add: ids("d")}, 3*time.Second))
		require.Equal(t, []elector.NodeID{"a", "b", "c", "d"}, s.View("a").Voters)
		require.NoError(t, s.Crash("b", sim.Crash{}))
		require.NoError(t, s.Wipe("b"))
		require.NoError(t, s.Join("b"))
		require.NoError(t, s.Restart("b"))
		require.NoError(t, s.RunFor(3*time.Second))
		require.NoError(t, asked(t, s, sim.Ask{Via: "d", Add: ids("b"), Remove: ids("b")}, 3*time.Second))
		for _, id := range s.Nodes() {
			require.Equal(t, []elector.NodeID{"a", "b", "c", "d"}, s.View(id).Voters)
			require.Len(t, s.View(id).Record.Committed.Voters.Voters(), 4)
		}
		require.NoError(t, asked(t, s, sim.Ask{Via: "b", Remove: ids("a")}, 10*time.Second))
		require.Equal(t, []elector.NodeID{"b", "c", "d"}, s.View("b").Voters)
		require.NotEqual(t, elector.NodeID("a"), leader(t, s))
		require.ErrorContains(t, asked(t, s, sim.Ask{Add: ids("x")}, time.Second), "not connected")
	}
}
