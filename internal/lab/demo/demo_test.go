package demo

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/findings"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/base/slowness"
	"github.com/bmqelect/bmqelect/internal/foreign"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/all"
)

// What a leader of another algorithm does not get: the node says so where it is asked.
func TestALeaderWithoutALeaseMayNotAct(t *testing.T) {
	ctx, err := With(t.Context(), "bully")
	require.NoError(t, err)
	timing := elector.LAN()
	node, err := cluster.Start(ctx, cluster.Config{
		Node: "a", Voters: []cluster.NodeID{"a"}, DataDir: t.TempDir(),
		GossipAddr: "127.0.0.1:0", MeshAddr: "127.0.0.1:0",
		Election: cluster.ElectionConfig{Timing: timing},
	})
	require.NoError(t, err)
	defer node.Close(t.Context())
	leads := func() bool { return node.Status().Groups[0].Role == "LEADER" }
	require.Eventually(t, leads, slowness.Limit(10*time.Second), time.Millisecond)
	require.False(t, node.IsLeader())
	require.Equal(t, "bully", node.Status().Algorithm)
	require.Contains(t, node.Status().Groups[0].Explanation, "nobody may act on who leads")
	_, err = node.NextLSN()
	require.ErrorIs(t, err, cluster.ErrNotLeader)
}

// A voter that shows another algorithm among real ones is found, and does not lead them.
func TestADemonstrationInARealClusterIsFound(t *testing.T) {
	ctx, err := With(t.Context(), "bully")
	require.NoError(t, err)
	start := func(ctx context.Context, id cluster.NodeID, join ...string) *cluster.Node {
		n, err := cluster.Start(ctx, cluster.Config{
			Node: id, Voters: []cluster.NodeID{"a", "b"}, DataDir: t.TempDir(), Join: join,
			GossipAddr: "127.0.0.1:0", MeshAddr: "127.0.0.1:0",
			Election: cluster.ElectionConfig{Timing: elector.LAN()},
		})
		require.NoError(t, err)
		t.Cleanup(func() { n.Close(context.Background()) })
		return n
	}
	shown := start(ctx, "a")
	actual := start(t.Context(), "b", shown.Status().GossipAddr)
	require.Eventually(t, func() bool {
		return slices.ContainsFunc(actual.Status().Findings, func(f findings.Finding) bool {
			return f.Kind == findings.SettingsDiffer &&
				strings.Contains(f.Detail, `algorithm is "bmqelect" on node "b" and "bully" on node "a"`)
		})
	}, slowness.Limit(10*time.Second), time.Millisecond)
}

// A node that cannot keep what its algorithm persists takes no part any more.
func TestANodeWithoutRoomForItsStateFails(t *testing.T) {
	ctx, err := With(t.Context(), "raft")
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "raft.state.new"), 0o700))
	node, err := cluster.Start(ctx, cluster.Config{
		Node: "a", Voters: []cluster.NodeID{"a"}, DataDir: dir,
		GossipAddr: "127.0.0.1:0", MeshAddr: "127.0.0.1:0",
		Election: cluster.ElectionConfig{Timing: elector.LAN()},
	})
	require.NoError(t, err)
	defer node.Close(t.Context())
	select {
	case <-node.Done():
	case <-time.After(slowness.Limit(10 * time.Second)):
		t.Fatal("the node is mute, and runs")
	}
	require.ErrorContains(t, node.Err(), "state of raft: ")
}

func TestWhatAMeshCannotRun(t *testing.T) {
	require.ErrorContains(t, Check("bulli"), `--algorithm: "bulli" is no algorithm, but these are: `)
	require.ErrorContains(t, Check("bmqelect"), "is what nodes run without it")
	for _, a := range all.Algorithms() {
		require.Equal(t, a.Store == nil && !a.Leased, slices.Contains(Names(), a.Name), a.Name)
		if a.Store != nil {
			require.ErrorContains(t, Check(a.Name), "needs a store")
		} else if !a.Leased {
			require.NoError(t, Check(a.Name))
		}
	}
}

// wire joins machines of one algorithm by what they encode. What it cannot carry is lost.
type wire struct {
	now     elector.Time
	setups  map[elector.NodeID]foreign.Setup
	nodes   map[elector.NodeID]foreign.Machine
	wakes   map[elector.NodeID]elector.Time
	flights []flight
}

type flight struct {
	from, to elector.NodeID
	body     []byte
}

func (w *wire) start(t *testing.T, a algorithm.Algorithm, id elector.NodeID) {
	m, err := machines(a)(w.setups[id])
	require.NoError(t, err)
	w.nodes[id] = m
	w.wakes[id] = m.Step(w.now, 7, elector.Start{}).Wake
}

// run lets time pass in steps of a millisecond, each message arriving in the next one.
func (w *wire) run(names []elector.NodeID, d time.Duration) {
	for end := w.now.Add(d); w.now < end; w.now = w.now.Add(time.Millisecond) {
		arrive := w.flights
		w.flights = nil
		for _, f := range arrive {
			for _, id := range names {
				if n := w.nodes[id]; n != nil && id != f.from && (f.to == id || f.to == elector.AllMembers) {
					n.Receive(f.from, f.body)
					w.wakes[id] = w.now
				}
			}
		}
		for i, id := range names {
			if w.nodes[id] != nil && w.wakes[id] <= w.now {
				w.wakes[id] = w.nodes[id].Step(w.now, uint64(i+1)<<60, elector.Tick{}).Wake
			}
		}
	}
}

// Every algorithm's messages and disk survive their encoding: it elects a leader, and another
// when that one is gone and back with what its disk has.
func TestEveryAlgorithmElectsByWhatItEncodes(t *testing.T) {
	names := []elector.NodeID{"a", "b", "c"}
	for _, a := range all.Algorithms() {
		if Check(a.Name) != nil || strings.HasPrefix(a.Name, "bmqelect") {
			continue
		}
		t.Run(a.Name, func(t *testing.T) {
			w := &wire{setups: map[elector.NodeID]foreign.Setup{}, now: 1000,
				nodes: map[elector.NodeID]foreign.Machine{}, wakes: map[elector.NodeID]elector.Time{}}
			for _, id := range names {
				w.setups[id] = foreign.Setup{Dir: t.TempDir(),
					Election: elector.Config{Self: id, Voters: names, Timing: elector.LAN()},
					Send: func(to elector.NodeID, body []byte) {
						w.flights = append(w.flights, flight{id, to, body})
					},
				}
				w.start(t, a, id)
			}
			for id, n := range w.nodes {
				for _, peer := range names {
					if peer != id {
						n.Step(w.now, 7, elector.LinkUp{Peer: peer})
					}
				}
			}
			agreed := func() (leader elector.NodeID) {
				leaders := map[elector.NodeID]bool{}
				for _, n := range w.nodes {
					leaders[n.Status().Leader] = true
					leader = n.Status().Leader
				}
				require.Len(t, leaders, 1)
				require.Equal(t, elector.Leader, w.nodes[leader].Status().Role)
				return leader
			}
			w.run(names, 10*time.Second)
			first := agreed()
			delete(w.nodes, first)
			for _, n := range w.nodes {
				n.Step(w.now, 7, elector.LinkDown{Peer: first, Evidence: elector.EvidenceEOF})
			}
			w.run(names, 10*time.Second)
			require.NotEqual(t, first, agreed())
			w.start(t, a, first)
			for id, n := range w.nodes {
				for _, peer := range names {
					if peer != id {
						n.Step(w.now, 7, elector.LinkUp{Peer: peer})
					}
				}
			}
			w.run(names, 10*time.Second)
			agreed()
		})
	}
}
