package cluster

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/bmqelect/bmqelect/cluster/internal/testhook"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/base/clock"
	"github.com/bmqelect/bmqelect/internal/base/memnet"
	"github.com/bmqelect/bmqelect/netmesh/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a cluster in virtual time: real nodes, real disks but without
// fsync, and a network in memory. It is to be used within synctest.Test.
type world struct {
	t      *testing.T
	net    *memnet.Network
	dir    string
	voters []NodeID
	peers  map[NodeID]string
	nodes  map[NodeID]*Node
	faults map[NodeID]*fault.Faults
	edit   func(*Config)
	hold   func(NodeID) // called by a node's driver before everything that it does
	seed   uint64       // of what the nodes draw; 0: any
	starts uint64
}

func newWorld(t *testing.T, voters ...NodeID) *world {
	w := &world{
		t: t, net: memnet.New(), dir: t.TempDir(), voters: voters,
		peers: map[NodeID]string{}, nodes: map[NodeID]*Node{}, faults: map[NodeID]*fault.Faults{},
		edit: func(*Config) {}, hold: func(NodeID) {},
	}
	for _, v := range voters {
		w.peers[v] = string(v) + ":7401"
	}
	t.Cleanup(w.closeAll)
	return w
}

func (w *world) start(ids ...NodeID) {
	for _, id := range ids {
		w.peers[id] = string(id) + ":7401"
		w.faults[id] = fault.New()
		cfg := Config{
			Node: id, Voters: w.voters, DataDir: filepath.Join(w.dir, string(id)),
			MeshAddr: w.peers[id], Faults: w.faults[id],
		}
		w.edit(&cfg)
		n, err := Start(w.context(id), cfg)
		require.NoError(w.t, err)
		w.nodes[id] = n
	}
}

func (w *world) context(id NodeID) context.Context {
	return testhook.With(context.Background(), testhook.Hooks{
		Network: w.net.Host(string(id)), Clock: clock.Process(), Peers: w.peers,
		Hold: func() { w.hold(id) }, Entropy: w.entropy(), Disk: testhook.Unsynced,
	})
}

// entropy is the source of a node that starts; nil: any.
func (w *world) entropy() func() uint64 {
	if w.seed == 0 {
		return nil
	}
	w.starts++
	return rand.New(rand.NewPCG(w.seed, w.starts)).Uint64
}

// machine is the state of a node's machine.
func (n *Node) machine() (st elector.Status) {
	n.view(func() { st = n.groups[DefaultGroup].machine.Status() })
	return st
}

// crash ends a node as a kill would: its connections break off before it could
// say anything.
func (w *world) crash(id NodeID) {
	w.net.Kill(string(id))
	w.close(id)
}

func (w *world) close(id NodeID) {
	require.NoError(w.t, w.nodes[id].Close(context.Background()))
	delete(w.nodes, id)
}

func (w *world) closeAll() {
	for id := range w.nodes {
		w.close(id)
	}
}

// isolate cuts a node off.
func (w *world) isolate(id NodeID) { w.faults[id].Cut("*", fault.Both) }

// leader is the node that leads, on which all the others agree; it fails the
// test if there is none or more than one.
func (w *world) leader() *Node {
	w.t.Helper()
	var leader *Node
	for _, n := range w.nodes {
		if n.IsLeader() {
			require.Nil(w.t, leader, "two leaders")
			leader = n
		}
	}
	require.NotNil(w.t, leader, "no leader")
	for _, n := range w.nodes {
		require.Equal(w.t, leader.cfg.Node, n.Status().Groups[0].Leader, "as %s sees it", n.cfg.Node)
	}
	return leader
}

func (w *world) others(not *Node) (ids []NodeID) {
	for _, v := range w.voters {
		if v != not.cfg.Node {
			ids = append(ids, v)
		}
	}
	return ids
}

// election is longer than the initial wait, a back-off and an election take.
const election = 10 * time.Second
