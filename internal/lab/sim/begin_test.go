package sim_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/elector/spec"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/raft"
	"github.com/bmqelect/bmqelect/internal/lab/sim"
	"github.com/bmqelect/bmqelect/lsn"
)

func TestBeginEstablishesTheLeader(t *testing.T) {
	for seed := range uint64(50) {
		s := start(t, led(seed, 5))
		require.Zero(t, s.Now())
		require.Equal(t, elector.NodeID("a"), leader(t, s))
		for _, id := range s.Nodes() {
			v := s.View(id)
			require.EqualValues(t, 7, v.Status.Term)
			require.Greater(t, v.Disk.Reserved, lsn.Term(7))
		}
	}
}

func TestBeginLeavesTheDisksOfAbsentNodesAlone(t *testing.T) {
	cfg := led(1, 4)
	cfg.Nodes[2].Absent, cfg.Nodes[2].Term = true, 1000
	cfg.Nodes[3].Absent = true
	for i := range cfg.Nodes {
		cfg.Nodes[i].Elector.Voters = names(3)
	}
	s := start(t, cfg)
	for id, want := range map[elector.NodeID]lsn.Term{"b": 6, "c": 1000, "d": 0} {
		require.Equal(t, want, s.View(id).Disk.Entered, id)
	}
}

// leading leads in term 1, whoever else does.
type leading struct{ self algorithm.NodeID }

func (l *leading) View() algorithm.View {
	return algorithm.View{Role: elector.Leader, Leader: l.self, Term: 1}
}

func (*leading) Step(algorithm.Time, uint64, algorithm.Input) algorithm.Effects {
	return algorithm.Effects{Wake: elector.Never}
}

// An election before time 0 that breaks a rule is reported, not repeated.
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

// An election before time 0 that elects another node is repeated.
func TestBeginTriesUntilTheLeaderIsElected(t *testing.T) {
	for _, id := range names(5) {
		cfg := cluster(1, 5)
		cfg.Begin.Leader, cfg.Algorithm = id, raft.Basic
		require.Equal(t, id, leader(t, start(t, cfg)))
	}
}
