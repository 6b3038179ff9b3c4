package sim_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/kubernetes"
	"github.com/bmqelect/bmqelect/internal/lab/sim"
)

// stored is a cluster of five whose algorithm has a store, after ten seconds; the store's leader
// is called L, and the others 1 to 4.
func stored(t *testing.T, seed uint64, change func(*sim.Config)) (*sim.Sim, []elector.NodeID) {
	cfg := cluster(seed, 5)
	cfg.Algorithm = kubernetes.Kubernetes
	if change != nil {
		change(&cfg)
	}
	s := start(t, cfg)
	require.NoError(t, s.RunUntil(10*time.Second))
	first, reach := s.StoreAt()
	require.Equal(t, names(5), reach)
	return s, append([]elector.NodeID{first}, slices.DeleteFunc(names(5),
		func(id elector.NodeID) bool { return id == first })...)
}

// star leaves the links of a hub only.
func star(t *testing.T, s *sim.Sim, hub elector.NodeID) {
	require.NoError(t, s.Partition(names(5)))
	for _, a := range names(5) {
		for _, b := range names(5) {
			if a != b && a != hub && b != hub {
				require.NoError(t, s.Cut(a, b))
			}
		}
	}
}

// Each rule of where the store is, and of who reaches it. A number is a member, 0 the one with the
// store's leader.
func TestWhereTheStoreIs(t *testing.T) {
	type ids = []elector.NodeID
	all, most := []int{0, 1, 2, 3, 4}, []int{2, 3, 4}
	for name, c := range map[string]struct {
		do    func(*sim.Sim, ids)
		lead  []int // one of these; none for nobody
		reach []int
	}{
		"all is well":           {func(*sim.Sim, ids) {}, []int{0}, all},
		"a hub sees all":        {func(s *sim.Sim, n ids) { star(t, s, n[1]) }, []int{1}, all},
		"the leader is the hub": {func(s *sim.Sim, n ids) { star(t, s, n[0]) }, []int{0}, all},
		"it is in the minority": {func(s *sim.Sim, n ids) { part(t, s, n[:2], n[2:]) }, most, most},
		"it is in the majority": {func(s *sim.Sim, n ids) {
			part(t, s, n[:3], n[3:])
		}, []int{0}, []int{0, 1, 2}},
		"nobody has a majority":  {func(s *sim.Sim, n ids) { part(t, s, n[:2], n[2:4]) }, nil, nil},
		"a link of it is broken": {func(s *sim.Sim, n ids) { cut(t, s, n[0], n[1]) }, []int{0}, all},
		"by the replica of a friend": {func(s *sim.Sim, n ids) {
			part(t, s, n[:4], n[4:])
			require.NoError(t, s.Heal(n[4], n[3]))
			require.NoError(t, s.Heal(n[3], n[4]))
		}, []int{0}, all},
		"not by two friends": {func(s *sim.Sim, n ids) { // 0 1 2 3 in a row, 0 1 4 too, 0 hears 4
			part(t, s, ids{n[0], n[1], n[4]}, ids{n[2]}, ids{n[3]})
			for _, w := range [][2]int{{1, 2}, {2, 1}, {2, 3}, {3, 2}} {
				require.NoError(t, s.Heal(n[w[0]], n[w[1]]))
			}
		}, []int{0}, []int{0, 1, 2, 4}},
		"its process is killed": {func(s *sim.Sim, n ids) {
			require.NoError(t, s.Crash(n[0], sim.Crash{}))
		}, []int{0}, all},
		"its host vanishes": {func(s *sim.Sim, n ids) {
			require.NoError(t, s.Crash(n[0], sim.Crash{Silent: true}))
		}, []int{1, 2, 3, 4}, all},
		"three hosts vanish": {func(s *sim.Sim, n ids) {
			for _, id := range n[2:] {
				require.NoError(t, s.Crash(id, sim.Crash{Silent: true}))
			}
		}, nil, nil},
		"the hub missed what was stored": {func(s *sim.Sim, n ids) {
			part(t, s, ids{n[0], n[2], n[3], n[4]}, ids{n[1]})
			require.NoError(t, s.RunFor(5*time.Second))
			star(t, s, n[1])
		}, nil, nil},
		"the hub has caught up": {func(s *sim.Sim, n ids) {
			part(t, s, ids{n[0], n[2], n[3], n[4]}, ids{n[1]})
			require.NoError(t, s.RunFor(5*time.Second))
			part(t, s, n)
			require.NoError(t, s.RunFor(time.Second))
			star(t, s, n[1])
		}, []int{1}, all},
	} {
		t.Run(name, func(t *testing.T) {
			s, n := stored(t, 1, nil)
			c.do(s, n)
			require.NoError(t, s.RunFor(5*time.Second))
			leader, reach := s.StoreAt()
			if c.lead == nil {
				require.Empty(t, leader)
				part(t, s, n)
				for _, id := range n[2:] {
					_ = s.Restart(id) // those that are gone
				}
				require.NoError(t, s.RunFor(3*time.Second))
				leader, _ = s.StoreAt()
				require.NotEmpty(t, leader, "it is back")
				return
			}
			require.Contains(t, c.lead, slices.Index(n, leader))
			var want ids
			for _, i := range c.reach {
				want = append(want, n[i])
			}
			require.ElementsMatch(t, want, reach)
		})
	}
}

func part(t *testing.T, s *sim.Sim, groups ...[]elector.NodeID) {
	require.NoError(t, s.Partition(groups...))
}

func cut(t *testing.T, s *sim.Sim, a, b elector.NodeID) { require.NoError(t, s.Cut(a, b)) }

// Without a leader there is no store for an election's time, from once it to twice it, wherever the
// store is, and for as long as it is told to.
func TestHowLongTheStoreIsGone(t *testing.T) {
	for _, apart := range []bool{false, true} {
		for seed := range uint64(5) {
			var crashed, started time.Duration
			s, _ := stored(t, seed, func(c *sim.Config) {
				c.Store = sim.Store{Apart: apart, Election: 3 * time.Second}
				c.Observer = func(e *sim.Event) {
					switch {
					case e.Node == algorithm.StoreNode && e.Kind == sim.EventCrashed:
						crashed = e.At
					case e.Node == algorithm.StoreNode && e.Kind == sim.EventStarted:
						started = e.At
					}
				}
			})
			for _, d := range []time.Duration{0, 20 * time.Second} {
				require.NoError(t, s.FailStore(d))
				require.Equal(t, s.Now(), crashed)
				require.NoError(t, s.RunFor(30*time.Second))
				require.GreaterOrEqual(t, started-crashed, d+3*time.Second)
				require.LessOrEqual(t, started-crashed, d+6*time.Second)
				_, reach := s.StoreAt()
				require.Len(t, reach, 5)
			}
		}
	}
}

// Nothing between a client and the store is lost, comes twice or overtakes, whatever the network
// does to a message; a short cut only delays.
func TestConnectionsToTheStoreKeepOrder(t *testing.T) {
	for _, apart := range []bool{false, true} {
		sent, came := map[elector.NodeID][]int{}, map[elector.NodeID][]int{}
		at, late := map[int]time.Duration{}, 0 // by 200 ms, which is more than two links take
		s, n := stored(t, 1, func(c *sim.Config) {
			c.Store.Apart = apart
			c.Network = sim.Faults{Delay: 10 * ms, Jitter: 90 * ms, LossPPM: 200_000,
				DuplicatePPM: 200_000, ReorderPPM: 200_000, LatePPM: 200_000}
			c.Observer = func(e *sim.Event) {
				switch {
				case e.Kind == sim.EventSent && e.Peer == algorithm.StoreNode:
					sent[e.Node] = append(sent[e.Node], e.Number)
					at[e.Number] = e.At
				case e.Kind == sim.EventDelivered && e.Node == algorithm.StoreNode:
					came[e.Peer] = append(came[e.Peer], e.Number)
					if e.At-at[e.Number] > 200*ms {
						late++
					}
				case e.Kind == sim.EventLinkDown && e.Peer == algorithm.StoreNode:
					t.Errorf("at %s %s lost its connection", e.At, e.Node)
				}
			}
		})
		require.NoError(t, s.RunFor(time.Minute))
		require.Positive(t, late, "some were lost, and sent again")
		for range 20 {
			require.NoError(t, s.Cut(n[1], n[0]))
			require.NoError(t, s.RunFor(time.Second))
			require.NoError(t, s.Heal(n[1], n[0]))
			require.NoError(t, s.RunFor(5*time.Second))
		}
		for _, id := range names(5) {
			require.Greater(t, len(sent[id]), 100)
			require.Equal(t, sent[id][:len(came[id])], came[id])
			require.Less(t, len(sent[id])-len(came[id]), 10)
		}
	}
}

// What is sent while the way is cut arrives when TCP sends it again: after 200 ms, 400 ms more, and
// so on. What is sent after it waits for it.
func TestWhatACutDelays(t *testing.T) {
	var sent, came time.Duration
	s, _ := stored(t, 1, func(c *sim.Config) {
		c.Store.Apart, c.Network = true, sim.Faults{Delay: 10 * ms}
		c.Observer = func(e *sim.Event) {
			switch {
			case sent > 0 && came == 0 && e.Kind == sim.EventDelivered && e.Peer == "a" &&
				e.Node == algorithm.StoreNode:
				came = e.At
			case sent < 0 && e.Kind == sim.EventSent && e.Peer == algorithm.StoreNode && e.Node == "a":
				sent = e.At
			}
		}
	})
	sent = -1
	require.NoError(t, s.Cut("a", algorithm.StoreNode))
	for sent < 0 {
		require.NoError(t, s.RunFor(ms))
	}
	require.NoError(t, s.RunUntil(sent+700*ms))
	require.NoError(t, s.Heal("a", algorithm.StoreNode))
	require.NoError(t, s.RunFor(time.Second))
	require.Equal(t, 1410*ms, came-sent)
}
