package algorithm_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/ble"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/bully"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/etcdlease"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/gmt"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/kubernetes"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/omega"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/script"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/vr"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/zookeeper"
	"github.com/bmqelect/bmqelect/internal/lab/replay"
	"github.com/bmqelect/bmqelect/internal/lab/sim"
	"github.com/bmqelect/bmqelect/scouting"
)

// cluster is n voters in profile article on a quiet network.
func cluster(a algorithm.Algorithm, seed uint64, n int) sim.Config {
	cfg := sim.Config{Seed: seed, Algorithm: a, FsyncMax: 10 * time.Millisecond,
		Network: sim.Faults{Delay: time.Millisecond}}
	var ids []elector.NodeID
	for i := range n {
		ids = append(ids, elector.NodeID(fmt.Sprintf("n%02d", i)))
	}
	for _, id := range ids {
		cfg.Nodes = append(cfg.Nodes, sim.NodeConfig{
			Elector: elector.Config{Self: id, Voters: ids, Timing: elector.Article()},
		})
	}
	return cfg
}

func each(t *testing.T, do func(*testing.T, algorithm.Algorithm)) {
	for _, a := range replay.Algorithms() {
		t.Run(a.Name, func(t *testing.T) { do(t, a) })
	}
}

// TestOneLeadsAfterAnySchedule plays faults at random. The simulator checks after every event
// what the algorithm promises, and that no machine spins. Once all is well, there is a leader.
func TestOneLeadsAfterAnySchedule(t *testing.T) {
	faults := slices.Concat(processes, network, []string{"stop", "transfer"})
	each(t, func(t *testing.T, a algorithm.Algorithm) {
		rapid.Check(t, func(t *rapid.T) {
			share := rapid.IntRange(0, 300_000)
			w := newWatched(t, a, rapid.IntRange(1, 5).Draw(t, "nodes"), 10_000, sim.Faults{
				Delay: time.Millisecond, Jitter: 20 * time.Millisecond, LossPPM: share.Draw(t, "loss"),
				DuplicatePPM: share.Draw(t, "twice"), ReorderPPM: share.Draw(t, "reorder"),
				LatePPM: share.Draw(t, "late"), LateMax: 5 * time.Second,
			})
			w.run(time.Millisecond) // all have started
			for range rapid.IntRange(0, 30).Draw(t, "steps") {
				w.run(time.Duration(rapid.IntRange(0, 5000).Draw(t, "wait")) * time.Millisecond)
				w.fault(rapid.SampledFrom(faults).Draw(t, "fault"))
			}
			w.calm()
			w.run(30 * time.Second)
			_, ok := w.Leader()
			require.True(t, ok || mayStayWithout[a.Name], "nobody leads at %s", w.Now())
		})
	})
}

// mayStayWithout are the algorithms that need not have a leader after any schedule: members
// that forgot who led may split the votes for ever, nobody notices a lost message, or too many
// restarted at a time.
var mayStayWithout = map[string]bool{gmt.GMT.Name: true, bully.UUID.Name: true, vr.VR.Name: true}

// TestSameSeedSameRun is that no machine depends on what is not among its inputs.
func TestSameSeedSameRun(t *testing.T) {
	each(t, func(t *testing.T, a algorithm.Algorithm) {
		trace := func() string {
			var events strings.Builder
			cfg := cluster(a, 1, 5)
			cfg.Network.LossPPM = 50_000
			cfg.Observer = func(e *sim.Event) { fmt.Fprintln(&events, e) }
			s, err := sim.New(cfg)
			require.NoError(t, err)
			s.At(10*time.Second, func(s *sim.Sim) error { return s.Crash("n00", sim.Crash{}) })
			s.At(20*time.Second, func(s *sim.Sim) error { return s.Restart("n00") })
			require.NoError(t, s.RunUntil(time.Minute))
			return events.String()
		}
		first := trace()
		require.Equal(t, first, trace())
		require.NotEmpty(t, first)
	})
}

// TestManyNodes is that as many nodes as there can be agree, and again after a crash, except in
// the program in which nobody succeeds the highest.
func TestManyNodes(t *testing.T) {
	each(t, func(t *testing.T, a algorithm.Algorithm) {
		s, err := sim.New(cluster(a, 1, scouting.MaxVoters))
		require.NoError(t, err)
		require.NoError(t, s.RunUntil(20*time.Second))
		leader, ok := s.Leader()
		require.True(t, ok)
		require.NoError(t, s.Crash(leader, sim.Crash{}))
		require.NoError(t, s.RunUntil(40*time.Second))
		next, ok := s.Leader()
		require.Equal(t, a.Name != bully.UUID.Name, ok)
		require.NotEqual(t, leader, next)
	})
}

// TestSixtyFourMembers is that what the simulator's limit, ours, does not bind elects one of 64,
// and another when that one has crashed.
func TestSixtyFourMembers(t *testing.T) {
	var ids []elector.NodeID
	for i := range 64 {
		ids = append(ids, elector.NodeID(fmt.Sprintf("n%02d", i)))
	}
	for _, a := range []algorithm.Algorithm{
		ble.BLE, zookeeper.ZooKeeper, etcdlease.EtcdLease, kubernetes.Kubernetes,
		omega.ID, omega.LC, omega.L,
	} {
		t.Run(a.Name, func(t *testing.T) {
			t.Parallel()
			s := script.New(a, elector.Article(), ids...)
			s.Play("hide ALIVE\nstart *\nrun 4s")
			first := agreed(t, s, 64)
			s.Play("crash " + first + "\nrun 10s")
			require.NotEqual(t, first, agreed(t, s, 63))
		})
	}
}

// agreed requires that so many members name the same leader, and returns it.
func agreed(t *testing.T, s *script.Script, members int) string {
	views := s.Play("views")
	require.Equal(t, 1, strings.Count(views, "LEADER leader="), views)
	leader := strings.Fields(views[strings.Index(views, "LEADER leader="):])[1]
	require.Equal(t, members, strings.Count(views, leader), views)
	return strings.TrimPrefix(leader, "leader=")
}
