package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/etcdlease"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/kubernetes"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/zookeeper"
	"github.com/bmqelect/bmqelect/internal/lab/sim"
)

// beliefs are who holds itself for the leader, and how long two did at most.
type beliefs struct {
	leaders map[elector.NodeID]bool
	since   time.Duration // two did from here on; meaningless with fewer
	longest time.Duration
}

func (b *beliefs) observe(e *sim.Event) {
	before := len(b.leaders)
	switch e.Kind {
	case sim.EventTransition:
		delete(b.leaders, e.Node)
		if e.Transition.To == elector.Leader {
			b.leaders[e.Node] = true
		}
	case sim.EventCrashed, sim.EventStopped:
		delete(b.leaders, e.Node)
	}
	if before < 2 {
		b.since = e.At
	} else {
		b.longest = max(b.longest, e.At-b.since)
	}
}

// TestTwoLeadersAtATime is what the documentation of the three says of it, for processes that
// are never paused, answers that take less than a fifth of the time-out, and clocks that run
// almost alike: in etcd alone two may lead, and not for long.
func TestTwoLeadersAtATime(t *testing.T) {
	timing := elector.Article()
	const slowest = 2 * 240 * time.Millisecond // a request and its answer, with all below
	ttl := timing.Inactivity()
	for _, c := range []struct {
		algorithm.Algorithm
		bound time.Duration
	}{
		{zookeeper.ZooKeeper, 0},
		{kubernetes.Kubernetes, 0},
		{etcdlease.EtcdLease, slowest + 2*ttl/10 + ttl/40},
	} {
		t.Run(c.Name, func(t *testing.T) {
			overlaps := time.Duration(0)
			rapid.Check(t, func(t *rapid.T) {
				b := &beliefs{leaders: map[elector.NodeID]bool{}}
				share := rapid.IntRange(0, 400_000)
				cfg := sim.Config{
					Seed: rapid.Uint64().Draw(t, "seed"), Algorithm: c.Algorithm, Observer: b.observe,
					Network: sim.Faults{
						Delay: time.Millisecond, Jitter: 20 * time.Millisecond, LossPPM: share.Draw(t, "loss"),
						DuplicatePPM: share.Draw(t, "twice"), ReorderPPM: share.Draw(t, "reorder"),
					},
				}
				ids := []elector.NodeID{"a", "b", "c"}
				for _, id := range ids {
					cfg.Nodes = append(cfg.Nodes, sim.NodeConfig{
						ClockRatePPM: rapid.Int64Range(-10_000, 10_000).Draw(t, "rate"),
						Elector:      elector.Config{Self: id, Voters: ids, Timing: timing},
					})
				}
				s, err := sim.New(cfg)
				require.NoError(t, err)
				require.NoError(t, s.RunUntil(time.Millisecond))
				for range rapid.IntRange(0, 30).Draw(t, "steps") {
					wait := time.Duration(rapid.IntRange(0, 4000).Draw(t, "wait")) * time.Millisecond
					require.NoError(t, s.RunUntil(s.Now()+wait))
					disturb(t, s, ids)
				}
				require.LessOrEqual(t, b.longest, c.bound, "at %s", s.Now())
				overlaps = max(overlaps, b.longest)
			})
			t.Log(overlaps)
		})
	}
}

// disturb cuts a node's ways to the others or back, or changes whether it runs.
func disturb(t *rapid.T, s *sim.Sim, ids []elector.NodeID) {
	at := rapid.IntRange(0, 2).Draw(t, "node")
	a, b, c := ids[at], ids[(at+1)%3], ids[(at+2)%3]
	switch rapid.IntRange(0, 5).Draw(t, "what") {
	case 0:
		_, _ = s.Cut(a, b), s.Cut(a, c)
	case 1:
		_, _ = s.Cut(b, a), s.Cut(c, a)
	case 2, 3:
		s.HealAll()
	case 4:
		_ = s.Crash(a, sim.Crash{})
	case 5:
		_ = s.Restart(a)
	}
}
