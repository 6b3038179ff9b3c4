package sim_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/sim"
)

// TestSlowDisksElect: where each write takes longer than an election may, and
// longer than the lease, a leader is elected anyway, and it stays leader.
func TestSlowDisksElect(t *testing.T) {
	for _, fsync := range []time.Duration{1100 * ms, 3 * time.Second, 8 * time.Second} {
		for n := 1; n <= 5; n++ {
			t.Run(fmt.Sprintf("%s/%d voters", fsync, n), func(t *testing.T) {
				for seed := range uint64(20) {
					cfg := cluster(seed, n)
					cfg.FsyncMin, cfg.FsyncMax = fsync, fsync
					s := start(t, cfg)
					requireLeaderWithin(t, s, bound(cfg))
					require.NoError(t, s.RunFor(10*time.Second)) // any other candidate gives up
					first := leader(t, s)
					require.NoError(t, s.RunFor(time.Minute))
					require.Equal(t, first, leader(t, s))
				}
			})
		}
	}
}

func TestSingleVoterLeadsAsSoonAsItsTermIsDurable(t *testing.T) {
	cfg := cluster(1, 1)
	cfg.FsyncMin, cfg.FsyncMax = 3*time.Second, 3*time.Second
	s := start(t, cfg)
	require.NoError(t, s.RunUntil(3*time.Second))
	require.Equal(t, elector.NodeID("a"), leader(t, s))
	require.NoError(t, s.RunFor(10*time.Minute))
	require.EqualValues(t, 1, s.View("a").Status.Term, "the term climbs")
}

// TestLeaderBeginsWithALease: where votes take nearly as long as the lease nobody is
// elected only to lose leadership before the first ack comes. On a slow network nobody could
// keep a lease, so nobody is elected. With slow disks alone, the repeated votes are quick.
func TestLeaderBeginsWithALease(t *testing.T) {
	for name, c := range map[string]struct{ way, fsync time.Duration }{
		"slow disk":    {10 * ms, 960 * ms},
		"slow network": {480 * ms, 0},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(50) {
				cfg := cluster(seed, 3)
				cfg.Network.Delay = c.way
				cfg.FsyncMin, cfg.FsyncMax = c.fsync, c.fsync
				expired := count(&cfg, func(e *sim.Event) bool {
					return e.Kind == sim.EventTransition && e.Transition.Reason == elector.LeaseExpired
				})
				s := start(t, cfg)
				require.NoError(t, s.RunFor(time.Minute))
				require.Zero(t, *expired)
				_, ok := s.Leader()
				require.Equal(t, name == "slow disk", ok)
			}
		})
	}
}

// TestSlowDisksKeepALeaderThatReaffirmsItself: a node comes up in a far higher term. To write
// the new term takes three times the lease.
func TestSlowDisksKeepALeaderThatReaffirmsItself(t *testing.T) {
	for seed := range uint64(50) {
		cfg := led(seed, 3)
		cfg.Nodes[2].Absent, cfg.Nodes[2].Term = true, 1000
		watch := watchLeaders(&cfg)
		s := start(t, cfg)
		watch.unseated = ""
		s.SetFsync(3*time.Second, 3*time.Second)
		require.NoError(t, s.Restart("c"))
		require.NoError(t, s.RunFor(time.Minute))
		require.Empty(t, watch.unseated)
		status := s.View("c").Status
		require.Equal(t, elector.NodeID("a"), status.Leader)
		require.EqualValues(t, 1001, status.Term)
	}
}

// TestAFailoverWaitsForNoDisk: no disk completes a write any more, and the next leader is there
// as soon as with the fastest disk.
func TestAFailoverWaitsForNoDisk(t *testing.T) {
	for seed := range uint64(50) {
		s := start(t, led(seed, 5))
		s.SetFsync(24*time.Hour, 24*time.Hour)
		for range 3 { // each failover uses a term or two
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
		cfg := led(seed, 5)
		leaders := count(&cfg, func(e *sim.Event) bool {
			return e.Kind == sim.EventTransition && e.Transition.To == elector.Leader
		})
		s := start(t, cfg)
		crash := func(id elector.NodeID) error { return s.Crash(id, sim.Crash{}) }
		for _, end := range []func(elector.NodeID) error{crash, s.Stop} {
			for _, id := range s.Nodes()[1:] {
				require.NoError(t, end(id))
				require.NoError(t, s.RunFor(3*time.Second))
				require.NoError(t, s.Restart(id))
				require.NoError(t, s.RunFor(3*time.Second))
				status := s.View(id).Status
				require.Equal(t, elector.NodeID("a"), status.Leader)
				require.EqualValues(t, 7, status.Term)
				require.Equal(t, elector.NodeID("a"), status.PromisedTo, "it backs the lease again")
			}
		}
		require.Equal(t, 1, *leaders, "the one before time 0")
	}
}
