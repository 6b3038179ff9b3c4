package sim_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/elector/spec"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/raft"
	"github.com/bmqelect/bmqelect/internal/lab/sim"
)

// leading leads in term 1, whoever else does.
type leading struct{ self algorithm.NodeID }

func (l *leading) View() algorithm.View {
	return algorithm.View{Role: elector.Leader, Leader: l.self, Term: 1}
}

func (*leading) Step(algorithm.Time, uint64, algorithm.Input) algorithm.Effects {
	return algorithm.Effects{Wake: elector.Never}
}

// An election before time 0 that breaks a promise is not tried again until one does not.
func TestBeginReportsAViolation(t *testing.T) {
	cfg, machines := cluster(1, 3), 0
	cfg.Begin.Leader = "a"
	cfg.Algorithm = algorithm.Algorithm{Name: "leading", OneLeaderPerTerm: true,
		New: func(c algorithm.Config) algorithm.Machine {
			machines++
			return &leading{c.Self()}
		}}
	_, err := sim.New(cfg)
	var broken *spec.Violation
	require.ErrorAs(t, err, &broken)
	require.Less(t, machines, 20, "one attempt, and the one that is observed")
}

// It is tried again until the wanted leader is elected.
func TestBeginTriesUntilTheLeaderIsElected(t *testing.T) {
	for _, id := range names(5) {
		cfg := cluster(1, 5)
		cfg.Begin.Leader, cfg.Algorithm = id, raft.Basic
		s, err := sim.New(cfg)
		require.NoError(t, err)
		require.Equal(t, id, leader(t, s))
	}
}
