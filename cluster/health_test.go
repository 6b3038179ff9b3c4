package cluster_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/clustertest"
	"github.com/bmqelect/bmqelect/cluster/health"
)

// sick says which nodes of a test have a probe that fails, or one that hangs, by name.
type sick struct {
	fails, hangs map[cluster.NodeID]*atomic.Bool
}

// withProbes runs f with nodes that have two probes each.
func withProbes(t *testing.T, ids []cluster.NodeID, f func(*testing.T, *testCluster, sick)) {
	s := sick{map[cluster.NodeID]*atomic.Bool{}, map[cluster.NodeID]*atomic.Bool{}}
	for _, id := range ids {
		s.fails[id], s.hangs[id] = &atomic.Bool{}, &atomic.Bool{}
	}
	withCluster(t, ids, func(t *testing.T, c *testCluster) {
		defer func() {
			for _, id := range ids {
				s.hangs[id].Store(false)
			}
		}()
		f(t, c, s)
	}, clustertest.Configure(func(cfg *cluster.Config) {
		id := cfg.Node
		cfg.Health.Probes = []health.Probe{
			{Name: "disk", Action: "a sync", Timeout: 3 * time.Second, Failures: 1,
				Check: func(context.Context) error {
					for s.hangs[id].Load() {
						time.Sleep(time.Second / 100)
					}
					return nil
				}},
			{Name: "queue", Check: func(context.Context) error {
				if s.fails[id].Load() {
					return errors.New("it is full")
				}
				return nil
			}},
		}
	}))
}

func TestProbesDecideInEveryElection(t *testing.T) {
	withProbes(t, three, func(t *testing.T, c *testCluster, s sick) {
		old := c.elect()
		for group := range c.open("early", map[cluster.NodeID]int{old.ID(): 9}) {
			_ = group
		}
		time.Sleep(election)
		early := c.leader("early")
		s.fails[old.ID()].Store(true)
		s.fails[early.ID()].Store(true)
		time.Sleep(10 * time.Second)
		require.NotEqual(t, old, c.leader())
		require.NotEqual(t, early, c.leader("early"))
		late := c.open("late", map[cluster.NodeID]int{old.ID(): 9})
		require.Equal(t, "queue: it is full", late[old.ID()].Status().Unfit)
		time.Sleep(election)
		require.NotEqual(t, old, c.leader("late"), "an election that was opened later")
		probe := old.Status().Probes[1]
		require.False(t, probe.Fit)
		require.Equal(t, "it is full", probe.Why)
		require.Positive(t, probe.Failures)
	})
}

// The application, an operator and the probes have a word each.
func TestProbesAndOthersDoNotOverwriteEachOther(t *testing.T) {
	withProbes(t, three, func(t *testing.T, c *testCluster, s sick) {
		n := c.elect()
		id, e := n.ID(), n.Default()
		unfit := func() string { time.Sleep(10 * time.Second); return e.Status().Unfit }
		require.NoError(t, e.SetFit(errors.New("no database")))
		s.fails[id].Store(true)
		require.Equal(t, "no database; queue: it is full", unfit())
		require.NoError(t, e.SetFit(nil))
		require.Equal(t, "queue: it is full", unfit())
		s.hangs[id].Store(true)
		require.Equal(t, "disk: a sync takes longer than 3s; queue: it is full", unfit())
		s.fails[id].Store(false)
		require.NoError(t, e.SetCandidate(false))
		require.Equal(t, "disk: a sync takes longer than 3s", unfit())
		s.hangs[id].Store(false)
		require.Empty(t, unfit())
		require.Contains(t, c.leader().Status().Groups[0].Voters, id)
		require.False(t, e.Status().Candidate, "the operator's word stands")
		require.NoError(t, e.SetFit(errors.New("no database")))
		require.Equal(t, "no database", unfit())
	})
}

// A disk of all nodes that hangs makes all unfit: leadership stays where it is, and moves at most
// once although the nodes recover one after the other, in whatever order.
func TestAFaultOfAllNodesMovesLeadershipAtMostOnce(t *testing.T) {
	withProbes(t, three, func(t *testing.T, c *testCluster, s sick) {
		old := c.elect()
		term := old.Status().Groups[0].Term
		for round := range 4 {
			for _, hangs := range s.hangs {
				hangs.Store(true)
			}
			time.Sleep(5 * time.Minute)
			now := c.leader()
			require.NotEmpty(t, now.Status().Groups[0].Unfit)
			for i := range three { // each recovers at a time of its own
				s.hangs[three[(i+round)%len(three)]].Store(false)
				time.Sleep(700 * time.Millisecond)
			}
			time.Sleep(time.Minute)
			next := c.leader().Status().Groups[0]
			require.LessOrEqual(t, next.Term, term+1, "one election at most")
			term = next.Term
		}
	})
}

// A fault that all nodes have in turn, for less than the node before needs to count as fit, does
// not move leadership from node to node.
func TestUnfitNodesDoNotPassLeadershipAround(t *testing.T) {
	withProbes(t, three, func(t *testing.T, c *testCluster, s sick) {
		term := c.elect().Status().Groups[0].Term
		for range 100 {
			for _, id := range three {
				s.fails[id].Store(true)
			}
			time.Sleep(3500 * time.Millisecond) // all are unfit
			for _, id := range three {
				s.fails[id].Store(false)
				time.Sleep(time.Second)
			}
		}
		require.Equal(t, term, c.leader().Status().Groups[0].Term)
	})
}

// A node whose probe fails from the start does not stand, not even as the only voter, until the
// first success.
func TestANodeThatStartsUnfitDoesNotStand(t *testing.T) {
	for name, ids := range map[string][]cluster.NodeID{"alone": one, "in a cluster": three} {
		t.Run(name, func(t *testing.T) {
			withProbes(t, ids, func(t *testing.T, c *testCluster, s sick) {
				c.elect()
				c.Crash("a")
				s.fails["a"].Store(true)
				time.Sleep(time.Minute)
				c.Start("a")
				time.Sleep(time.Minute)
				require.False(t, c.Node("a").IsLeader())
				require.Equal(t, "queue: it is full", c.Node("a").Status().Groups[0].Unfit)
				for _, id := range ids {
					s.fails[id].Store(id != "a")
				}
				time.Sleep(election)
				require.True(t, c.Node("a").IsLeader())
			})
		})
	}
}

func TestWhatIsWrongWithProbesIsNamed(t *testing.T) {
	cfg := cluster.Config{Node: "a", Voters: one, DataDir: "d"}
	check := func(context.Context) error { return nil }
	cfg.Health = health.Options{Period: -1, Timeout: -1, Failures: -1, Successes: -1,
		Probes: []health.Probe{{Name: "x", Check: check}, {Name: "x"}, {Check: check, Timeout: -1}}}
	err := cfg.Validate()
	for _, field := range []string{"Period", "Timeout", "Failures", "Successes", "Probes[1].Name",
		"Probes[1].Check", "Probes[2].Name", "Probes[2].Timeout"} {
		require.ErrorContains(t, err, "Health."+field)
	}
	require.NotContains(t, err.Error(), "Probes[0]")
}
