package raft_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/raft"
	"github.com/bmqelect/bmqelect/internal/lab/sim"
)

var variants = []algorithm.Algorithm{raft.Basic, raft.WithPreVote, raft.WithCheckQuorum}

const ms = time.Millisecond

var voters = []algorithm.NodeID{"a", "b", "c", "d", "e"}

func cluster(a algorithm.Algorithm, seed uint64) sim.Config {
	cfg := sim.Config{Algorithm: a, Seed: seed, Network: sim.Faults{Delay: ms, Jitter: ms}}
	for _, id := range voters {
		cfg.Nodes = append(cfg.Nodes, sim.NodeConfig{Elector: elector.Config{
			Self: id, Voters: voters, Timing: elector.Article(),
		}})
	}
	return cfg
}

// TestRandomFaults plays two minutes of faults. The simulator checks that no term has two
// leaders. Then all is healed, and somebody leads in time. RAFT_SEEDS plays more of them.
func TestRandomFaults(t *testing.T) {
	seeds, _ := strconv.Atoi(os.Getenv("RAFT_SEEDS"))
	for _, a := range variants {
		t.Run(a.Name, func(t *testing.T) {
			t.Parallel()
			elected := 0
			for seed := range uint64(max(seeds, 20)) {
				elected += playFaults(t, a, seed)
			}
			require.Greater(t, elected, 40, "elections under faults")
		})
	}
}

// playFaults returns how many leaders were elected in the time of faults.
func playFaults(t *testing.T, a algorithm.Algorithm, seed uint64) (elected int) {
	cfg := cluster(a, seed)
	rng := rand.New(rand.NewPCG(seed, 7))
	cfg.FsyncMax = time.Duration(rng.IntN(3)) * 100 * ms
	cfg.Network = sim.Faults{
		Delay: ms, Jitter: 20 * ms, LossPPM: rng.IntN(3) * 50_000, DuplicatePPM: 50_000,
		ReorderPPM: 100_000, ExtraMax: 2 * time.Second, LatePPM: 20_000,
	}
	cfg.Observer = func(e *sim.Event) {
		if e.Kind == sim.EventTransition && e.Transition.To == elector.Leader {
			elected++
		}
	}
	s, err := sim.New(cfg)
	require.NoError(t, err)
	running := map[algorithm.NodeID]bool{"a": true, "b": true, "c": true, "d": true, "e": true}
	require.NoError(t, s.RunUntil(5*time.Second))
	for s.Now() < 2*time.Minute {
		id, peer := voters[rng.IntN(5)], voters[rng.IntN(5)]
		fault(t, s, rng, id, peer, running)
		pause := time.Duration(rng.Int64N(int64(2 * time.Second)))
		require.NoError(t, s.RunUntil(s.Now()+pause), "seed %d", seed)
	}
	s.HealAll()
	for _, id := range voters {
		if !running[id] {
			require.NoError(t, s.Restart(id))
		}
		for _, peer := range voters {
			if id != peer {
				require.NoError(t, s.SetFaults(id, peer, sim.Faults{Delay: ms}))
			}
		}
	}
	found := elected
	for end := s.Now() + time.Minute; s.Now() < end; {
		require.NoError(t, s.RunUntil(s.Now()+time.Second), "seed %d", seed)
	}
	_, ok := s.Leader()
	require.True(t, ok, "seed %d: nobody leads", seed)
	return found
}

// fault is one thing that goes wrong, or gets better.
func fault(t *testing.T, s *sim.Sim, rng *rand.Rand, id, peer algorithm.NodeID,
	running map[algorithm.NodeID]bool) {
	t.Helper()
	leader, led := s.Leader()
	if led && rng.IntN(2) == 0 {
		id = leader
	}
	var err error
	switch n := rng.IntN(10); {
	case n < 3 && !running[id]:
		err, running[id] = s.Restart(id), true
	case n < 3:
		err = s.Crash(id, sim.Crash{Unsynced: sim.UnsyncedByChance, Silent: n == 0})
		running[id] = false
	case n < 6 && id != peer:
		err = s.Cut(id, peer)
	case n < 8:
		s.HealAll()
	case led && peer != leader:
		err = s.Transfer(leader, peer)
	}
	require.NoError(t, err, fmt.Sprint(id, peer))
}
