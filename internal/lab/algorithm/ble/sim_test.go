package ble_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/ble"
	"github.com/bmqelect/bmqelect/internal/lab/sim"
)

// TestFourTimeoutsAfterAnyPartition is the source's guarantee, on any links that leave a server
// connected to a quorum, and with rounds that begin at any time: within four time-outs a
// server leads that a quorum follows.
func TestFourTimeoutsAfterAnyPartition(t *testing.T) {
	timing := elector.Article()
	rapid.Check(t, func(t *rapid.T) {
		ids := []elector.NodeID{"a", "b", "c", "d", "e"}
		const settled = 20 * time.Second
		cfg := sim.Config{Seed: rapid.Uint64().Draw(t, "seed"), Algorithm: ble.BLE,
			Network: sim.Faults{Delay: time.Millisecond}}
		for _, id := range ids {
			cfg.Nodes = append(cfg.Nodes, sim.NodeConfig{
				Elector: elector.Config{Self: id, Voters: ids, Timing: timing}, Absent: true})
		}
		s, err := sim.New(cfg)
		require.NoError(t, err)
		for _, id := range ids {
			at := time.Duration(rapid.IntRange(0, 1500).Draw(t, "phase")) * time.Millisecond
			s.At(at, func(s *sim.Sim) error { return s.Restart(id) })
		}
		require.NoError(t, s.RunUntil(settled))
		hub := rapid.IntRange(0, 4).Draw(t, "hub")
		for i, a := range ids {
			for j, b := range ids[:i] {
				// The hub keeps two links at least.
				spoke := i == hub && (i-j)%5 <= 2 || j == hub && (5+j-i)%5 <= 2
				if !spoke && rapid.Bool().Draw(t, "cut") {
					_, _ = s.Cut(a, b), s.Cut(b, a)
				}
			}
		}
		within := 4*timing.Inactivity() + 10*time.Millisecond
		led := func() bool { _, ok := s.Leader(); return ok }
		require.NoError(t, s.RunUntil(settled+within))
		require.True(t, led(), "nobody leads at %s", s.Now())
	})
}
