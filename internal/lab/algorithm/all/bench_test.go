package all_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/all"
	"github.com/bmqelect/bmqelect/internal/lab/sim"
)

// BenchmarkHour simulates an hour of five nodes.
func BenchmarkHour(b *testing.B) {
	for _, a := range all.Algorithms() {
		b.Run(a.Name, func(b *testing.B) {
			for b.Loop() {
				cfg := sim.Config{Algorithm: a, Network: sim.Faults{Delay: time.Millisecond}}
				voters := []elector.NodeID{"a", "b", "c", "d", "e"}
				for _, id := range voters {
					cfg.Nodes = append(cfg.Nodes, sim.NodeConfig{Elector: elector.Config{
						Self: id, Voters: voters, Timing: elector.Article(),
					}})
				}
				s, err := sim.New(cfg)
				require.NoError(b, err)
				require.NoError(b, s.RunUntil(time.Hour))
				_, ok := s.Leader()
				require.True(b, ok)
			}
		})
	}
}
