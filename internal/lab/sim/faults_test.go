package sim_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/elector/spec"
	"github.com/bmqelect/bmqelect/internal/lab/sim"
	"github.com/bmqelect/bmqelect/lsn"
)

// established is a cluster of five that a leads in term 7 at time 0.
func established(t *testing.T, seed uint64) (*sim.Sim, map[elector.Proof]int) {
	cfg := cluster(seed, 5)
	cfg.Begin = sim.Begin{Leader: "a", Term: 7}
	proofs := map[elector.Proof]int{}
	cfg.Observer = func(e *sim.Event) {
		if e.Kind == sim.EventDied {
			proofs[e.Proof]++
		}
	}
	return start(t, cfg), proofs
}

func TestBeginEstablishesTheLeader(t *testing.T) {
	for seed := range uint64(50) {
		s, _ := established(t, seed)
		require.Zero(t, s.Now())
		require.Equal(t, elector.NodeID("a"), leader(t, s))
		for _, id := range s.Nodes() {
			v, err := s.View(id)
			require.NoError(t, err)
			require.EqualValues(t, 7, v.Status.Term)
			require.Greater(t, v.Disk.Reserved, lsn.Term(7))
		}
	}
}

func TestBeginLeavesTheDisksOfAbsentNodesAlone(t *testing.T) {
	cfg := cluster(1, 4)
	cfg.Begin = sim.Begin{Leader: "a", Term: 7}
	cfg.Nodes[2].Absent, cfg.Nodes[2].Term = true, 1000
	cfg.Nodes[3].Absent = true
	for i := range cfg.Nodes {
		cfg.Nodes[i].Elector.Voters = names(3)
	}
	s := start(t, cfg)
	for id, want := range map[elector.NodeID]lsn.Term{"b": 6, "c": 1000, "d": 0} {
		v, err := s.View(id)
		require.NoError(t, err)
		require.Equal(t, want, v.Disk.Entered, id)
	}
}

func TestCrashOfAProcessIsProvenToEveryPeer(t *testing.T) {
	s, proofs := established(t, 1)
	require.NoError(t, s.Crash("a", sim.Crash{}))
	require.NoError(t, s.RunFor(time.Second))
	require.Equal(t, map[elector.Proof]int{elector.ProofRefusedAfterEOF: 4}, proofs)
}

// Without a FIN, a later boot may be that of a copied disk: it proves nothing.
func TestSilentCrashIsNotProvenByARestart(t *testing.T) {
	for _, down := range []time.Duration{time.Second, 10 * time.Second} {
		s, proofs := established(t, 1)
		require.NoError(t, s.Crash("a", sim.Crash{Silent: true}))
		require.NoError(t, s.RunFor(down))
		require.NoError(t, s.Restart("a"))
		require.NoError(t, s.RunFor(time.Second))
		require.Empty(t, proofs, "down for %s", down)
	}
}

func TestPausedLeaderWakesWithoutALease(t *testing.T) {
	s, _ := established(t, 1)
	require.NoError(t, s.Pause("a"))
	require.NoError(t, s.RunFor(20*time.Second))
	require.NotEqual(t, elector.NodeID("a"), leader(t, s))
	require.NoError(t, s.Resume("a"))
	v, err := s.View("a")
	require.NoError(t, err)
	require.False(t, v.LeaseValid)
	require.Equal(t, elector.Follower, v.Status.Role)
}

func TestActionsOnTheWrongNodesAreErrors(t *testing.T) {
	s, _ := established(t, 1)
	require.ErrorContains(t, s.Cut("a", "z"), "cut a->z: these are not two nodes")
	require.ErrorContains(t, s.Cut("a", "a"), "cut a->a: these are not two nodes")
	require.ErrorContains(t, s.Restart("a"), "a runs already")
	require.ErrorContains(t, s.Resume("a"), "not paused")
}

func TestCheckerSeesTwoLeasesAndTwoLeaders(t *testing.T) {
	c := spec.NewCluster(nil, 0, spec.Checks{})
	require.Nil(t, c.Lease(time.Second, "a", 1, 3*time.Second))
	require.Equal(t, "I2", c.Lease(2*time.Second, "b", 2, 4*time.Second).Rule)
	require.Nil(t, c.Lease(3*time.Second, "b", 2, 4*time.Second))

	c = spec.NewCluster(nil, 0, spec.Checks{NoLeases: true})
	beat := elector.Message{Kind: elector.LeaderHeartbeat, Term: 1}
	says := func(id elector.NodeID) *spec.Violation {
		return c.Step(&spec.Step{Node: id, State: &elector.State{}, Effects: &elector.Effects{
			Messages: []elector.Envelope{{To: elector.AllMembers, Message: beat}},
		}})
	}
	require.Equal(t, "persist", says("a").Rule)
	require.Nil(t, c.Durable("a", exact(1)))
	require.Nil(t, c.Durable("b", exact(1)))
	require.Nil(t, says("a"))
	require.Equal(t, "I1", says("b").Rule)
	require.Equal(t, "I3", c.Booted("a", exact(0)).Rule)

	require.Nil(t, c.Durable("a", elector.Terms{Entered: 1, Reserved: 9}))
	beat.Term = 9
	require.Nil(t, says("a"))
	require.Equal(t, "I3", c.Durable("a", exact(8)).Rule)
	require.Nil(t, c.Durable("a", exact(9)))
}

func exact(term lsn.Term) elector.Terms { return elector.Terms{Entered: term, Reserved: term} }
