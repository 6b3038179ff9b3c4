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
	for _, fsync := range []time.Duration{1100 * time.Millisecond, 3 * time.Second, 8 * time.Second} {
		for n := 1; n <= 5; n++ {
			t.Run(fmt.Sprintf("%s/%d voters", fsync, n), func(t *testing.T) {
				for seed := range uint64(20) {
					cfg := cluster(seed, n)
					cfg.FsyncMin, cfg.FsyncMax = fsync, fsync
					s := start(t, cfg)
					requireLeaderWithin(t, s, bound(cfg))
					require.NoError(t, s.RunFor(10*time.Second)) // whoever stood besides gives up
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
	v, err := s.View("a")
	require.NoError(t, err)
	require.EqualValues(t, 1, v.Status.Term, "the term climbs")
}

// TestLeaderBeginsWithALease: where votes take nearly as long as the lease nobody is
// elected only to lose leadership before the first ack comes. Where the way is slow it
// could not be kept; where only the disk is, the repeated votes are quick.
func TestLeaderBeginsWithALease(t *testing.T) {
	for name, c := range map[string]struct{ way, fsync time.Duration }{
		"slow disk": {10 * time.Millisecond, 960 * time.Millisecond},
		"slow way":  {480 * time.Millisecond, 0},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(50) {
				cfg := cluster(seed, 3)
				cfg.Network.Delay = c.way
				cfg.FsyncMin, cfg.FsyncMax = c.fsync, c.fsync
				expired := 0
				cfg.Observer = func(e *sim.Event) {
					if e.Kind == sim.EventTransition && e.Transition.Reason == elector.LeaseExpired {
						expired++
					}
				}
				s := start(t, cfg)
				require.NoError(t, s.RunFor(time.Minute))
				require.Zero(t, expired)
				_, ok := s.Leader()
				require.Equal(t, name == "slow disk", ok)
			}
		})
	}
}

// TestSlowDisksKeepALeaderThatReaffirmsItself: a node comes up in a far higher term,
// and to write that takes three times the lease.
func TestSlowDisksKeepALeaderThatReaffirmsItself(t *testing.T) {
	for seed := range uint64(50) {
		cfg := cluster(seed, 3)
		cfg.Begin = sim.Begin{Leader: "a", Term: 7}
		cfg.Nodes[2].Absent, cfg.Nodes[2].Term = true, 1000
		watch := watchLeaders(&cfg)
		s, err := sim.New(cfg)
		require.NoError(t, err)
		watch.unseated = ""
		s.SetFsync(3*time.Second, 3*time.Second)
		require.NoError(t, s.Restart("c"))
		require.NoError(t, s.RunFor(time.Minute))
		require.Empty(t, watch.unseated)
		v, err := s.View("c")
		require.NoError(t, err)
		require.Equal(t, elector.NodeID("a"), v.Status.Leader)
		require.EqualValues(t, 1001, v.Status.Term)
	}
}
