package sim_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/sim"
)

const ms = time.Millisecond

// names are those of a cluster of n nodes: a, b, c and so on.
func names(n int) []elector.NodeID {
	ids := make([]elector.NodeID, n)
	for i := range ids {
		ids[i] = elector.NodeID(rune('a' + i))
	}
	return ids
}

// cluster is a cluster of n voters in profile article on a quiet network.
func cluster(seed uint64, n int) sim.Config {
	cfg := sim.Config{Seed: seed, Network: sim.Faults{Delay: ms}, FsyncMax: 10 * ms}
	for _, id := range names(n) {
		cfg.Nodes = append(cfg.Nodes, sim.NodeConfig{
			Elector: elector.Config{Self: id, Voters: names(n), Timing: elector.Article()},
		})
	}
	return cfg
}

// led is such a cluster that a leads in term 7 at time 0.
func led(seed uint64, n int) sim.Config {
	cfg := cluster(seed, n)
	cfg.Begin = sim.Begin{Leader: "a", Term: 7}
	return cfg
}

func start(t require.TestingT, cfg sim.Config) *sim.Sim {
	s, err := sim.New(cfg)
	require.NoError(t, err)
	return s
}

// leader requires that there is one, and returns it.
func leader(t require.TestingT, s *sim.Sim) elector.NodeID {
	id, ok := s.Leader()
	require.True(t, ok, "nobody leads at %s", s.Now())
	return id
}

// count makes a config count the events for which is holds.
func count(cfg *sim.Config, is func(*sim.Event) bool) *int {
	n := new(int)
	cfg.Observer = func(e *sim.Event) {
		if is(e) {
			*n++
		}
	}
	return n
}

// record makes a config write every event into the builder.
func record(cfg *sim.Config) *strings.Builder {
	var b strings.Builder
	cfg.Observer = func(e *sim.Event) {
		b.WriteString(e.String())
		b.WriteByte('\n')
	}
	return &b
}

// eachLink does something to both directions of all links of a node.
func eachLink(s *sim.Sim, id elector.NodeID, do func(from, to elector.NodeID) error) (err error) {
	for _, peer := range s.Nodes() {
		if peer != id {
			err = errors.Join(err, do(id, peer), do(peer, id))
		}
	}
	return err
}

// sever ends the links of a node to some others at once.
func sever(t *testing.T, s *sim.Sim, a elector.NodeID, from ...elector.NodeID) {
	for _, b := range from {
		require.NoError(t, errors.Join(s.Cut(a, b), s.Cut(b, a), s.Reset(a, b)))
	}
}

func TestClusterElectsOneLeaderAndKeepsIt(t *testing.T) {
	for n := 1; n <= 7; n++ {
		s := start(t, cluster(1, n))
		require.NoError(t, s.RunUntil(15*time.Second))
		first := leader(t, s)
		require.NoError(t, s.RunUntil(10*time.Minute))
		require.Equal(t, first, leader(t, s))
		require.EqualValues(t, 1, s.View(first).Status.Term, "one election is enough for %d nodes", n)
	}
}
