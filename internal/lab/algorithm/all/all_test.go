package all_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/all"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/ble"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/bully"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/etcdlease"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/gmt"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/kubernetes"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/script"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/zookeeper"
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
	for _, a := range all.Algorithms() {
		t.Run(a.Name, func(t *testing.T) { do(t, a) })
	}
}

// TestOneLeadsAfterAnySchedule plays faults at random. The simulator checks after every event
// what the algorithm promises, and that no machine spins. Once all is well, there is a leader.
func TestOneLeadsAfterAnySchedule(t *testing.T) {
	each(t, func(t *testing.T, a algorithm.Algorithm) {
		rapid.Check(t, func(t *rapid.T) {
			cfg := cluster(a, rapid.Uint64().Draw(t, "seed"), rapid.IntRange(1, 5).Draw(t, "nodes"))
			share := rapid.IntRange(0, 300_000)
			cfg.Network = sim.Faults{
				Delay: time.Millisecond, Jitter: 20 * time.Millisecond, LossPPM: share.Draw(t, "loss"),
				DuplicatePPM: share.Draw(t, "twice"), ReorderPPM: share.Draw(t, "reorder"),
				LatePPM: share.Draw(t, "late"), LateMax: 5 * time.Second,
			}
			for i := range cfg.Nodes {
				cfg.Nodes[i].ClockRatePPM = rapid.Int64Range(-10_000, 10_000).Draw(t, "rate")
			}
			s, err := sim.New(cfg)
			require.NoError(t, err)
			require.NoError(t, s.RunUntil(time.Millisecond)) // all have started
			for range rapid.IntRange(0, 30).Draw(t, "steps") {
				wait := time.Duration(rapid.IntRange(0, 5000).Draw(t, "wait")) * time.Millisecond
				require.NoError(t, s.RunUntil(s.Now()+wait))
				disturb(t, s, cfg)
			}
			calm(s, cfg)
			require.NoError(t, s.RunUntil(s.Now()+30*time.Second))
			_, ok := s.Leader()
			require.True(t, ok || mayStayWithout[a.Name], "nobody leads at %s", s.Now())
		})
	})
}

// mayStayWithout are the algorithms that need not have a leader after any schedule: members
// that forgot who led may split the votes for ever, or nobody notices a lost message.
var mayStayWithout = map[string]bool{gmt.GMT.Name: true, bully.UUID.Name: true}

// disturb does something to a node, or to a way between two. What cannot be done is left out.
func disturb(t *rapid.T, s *sim.Sim, cfg sim.Config) {
	a := rapid.SampledFrom(cfg.Nodes).Draw(t, "a").Elector.Self
	b := rapid.SampledFrom(cfg.Nodes).Draw(t, "b").Elector.Self
	switch rapid.IntRange(0, 6).Draw(t, "what") {
	case 0:
		_ = s.Crash(a, sim.Crash{Unsynced: sim.UnsyncedByChance})
	case 1:
		_ = s.Restart(a)
	case 2:
		_ = s.Pause(a)
	case 3:
		_ = s.Resume(a)
	case 4:
		_ = s.Stop(a)
	case 5:
		_ = s.Cut(a, b)
	case 6:
		_ = s.Heal(a, b)
	}
}

// calm ends every fault.
func calm(s *sim.Sim, cfg sim.Config) {
	s.HealAll()
	for _, a := range cfg.Nodes {
		_, _ = s.Resume(a.Elector.Self), s.Restart(a.Elector.Self)
		for _, b := range cfg.Nodes {
			_ = s.SetFaults(a.Elector.Self, b.Elector.Self, sim.Faults{Delay: time.Millisecond})
		}
		if cfg.Algorithm.Store != nil {
			_ = s.SetFaults(a.Elector.Self, algorithm.StoreNode, sim.Faults{Delay: time.Millisecond})
			_ = s.SetFaults(algorithm.StoreNode, a.Elector.Self, sim.Faults{Delay: time.Millisecond})
		}
	}
}

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

// TestManyNodes is that as many nodes as there can be agree, and again after a crash.
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
		require.True(t, ok)
		require.NotEqual(t, leader, next)
	})
}

// TestSixtyFourMembers is that what the simulator's limit, ours, does not bind elects one of 64.
func TestSixtyFourMembers(t *testing.T) {
	var ids []elector.NodeID
	for i := range 64 {
		ids = append(ids, elector.NodeID(fmt.Sprintf("n%02d", i)))
	}
	for _, a := range []algorithm.Algorithm{
		ble.BLE, zookeeper.ZooKeeper, etcdlease.EtcdLease, kubernetes.Kubernetes,
	} {
		s := script.New(a, elector.Article(), ids...)
		s.Play("start *\nrun 4s")
		views := s.Play("views")
		require.Equal(t, 1, strings.Count(views, "LEADER leader="), views)
		leader := strings.Fields(views[strings.Index(views, "LEADER leader="):])[1]
		require.Equal(t, 64, strings.Count(views, leader+" "), views)
	}
}

// BenchmarkHour simulates an hour of five nodes.
func BenchmarkHour(b *testing.B) {
	for _, a := range all.Algorithms() {
		b.Run(a.Name, func(b *testing.B) {
			for b.Loop() {
				s, err := sim.New(cluster(a, 1, 5))
				require.NoError(b, err)
				require.NoError(b, s.RunUntil(time.Hour))
				_, ok := s.Leader()
				require.True(b, ok)
			}
		})
	}
}
