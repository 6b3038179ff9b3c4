package sim_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/sim"
)

// TestAFailoverWaitsForNoDisk: nothing that is asked of a disk is done any more, and the
// next leader is there as soon as with the fastest disk.
func TestAFailoverWaitsForNoDisk(t *testing.T) {
	for seed := range uint64(50) {
		s, _ := established(t, seed)
		s.SetFsync(24*time.Hour, 24*time.Hour)
		for range 3 { // of which each uses a term or two
			old := leader(t, s)
			require.NoError(t, s.Crash(old, sim.Crash{}))
			requireLeaderWithin(t, s, 6*time.Second)
			require.NotEqual(t, old, leader(t, s))
			s.SetFsync(0, 0)
			require.NoError(t, s.Restart(old))
			require.NoError(t, s.RunFor(10*time.Second))
			s.SetFsync(24*time.Hour, 24*time.Hour)
		}
	}
}

// TestRestartDisturbsNobody: whether a follower crashes or stops, and comes back, the leader
// goes on in its term, also when all others have been away.
func TestRestartDisturbsNobody(t *testing.T) {
	for seed := range uint64(50) {
		cfg := cluster(seed, 5)
		cfg.Begin = sim.Begin{Leader: "a", Term: 7}
		leaders := 0
		cfg.Observer = func(e *sim.Event) {
			if e.Kind == sim.EventTransition && e.Transition.To == elector.Leader {
				leaders++
			}
		}
		s := start(t, cfg)
		for _, end := range []func(elector.NodeID) error{
			func(id elector.NodeID) error { return s.Crash(id, sim.Crash{}) }, s.Stop,
		} {
			for _, id := range s.Nodes()[1:] {
				require.NoError(t, end(id))
				require.NoError(t, s.RunFor(3*time.Second))
				require.NoError(t, s.Restart(id))
				require.NoError(t, s.RunFor(3*time.Second))
				v, err := s.View(id)
				require.NoError(t, err)
				require.Equal(t, elector.NodeID("a"), v.Status.Leader)
				require.EqualValues(t, 7, v.Status.Term)
				require.Equal(t, elector.NodeID("a"), v.Status.PromisedTo, "it backs the lease again")
			}
		}
		require.Equal(t, 1, leaders, "the one before time 0")
	}
}
