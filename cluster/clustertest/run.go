package clustertest

import (
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/internal/testhook"
	"github.com/bmqelect/bmqelect/internal/memnet"
	"github.com/bmqelect/bmqelect/netmesh/fault"
)

// Option changes how Run sets up a cluster.
type Option func(*Cluster)

// Configure lets edit change the configuration of each node, before every one of
// its starts; Config.Node says which node it is. All nodes are voters unless edit
// changes Voters. Where a node keeps its data and how it reaches the others
// belongs to this package: such changes have no effect. May be given more than
// once.
func Configure(edit func(cfg *cluster.Config)) Option {
	return func(c *Cluster) { c.edits = append(c.edits, edit) }
}

// Hooks lets edit replace the clock, the disk and other things of each node before
// every one of its starts. It is for this module's own tests: others cannot make edit.
func Hooks(edit func(id cluster.NodeID, s *testhook.Hooks)) Option {
	return func(c *Cluster) { c.hooks = edit }
}

// Network lets edit set up the network in memory before the first node starts. It is for
// this module's own tests, like Hooks.
func Network(edit func(*memnet.Network)) Option {
	return func(c *Cluster) { edit(c.net) }
}

// Down lets nodes be down until the test calls Start.
func Down(ids ...cluster.NodeID) Option {
	return func(c *Cluster) { c.down = append(c.down, ids...) }
}

// Run runs f as a test with a cluster of the given nodes, just started unless they are
// Down, in virtual time. It must not be called within a bubble of
// testing/synctest. When f has returned, or failed, the nodes are closed; if the
// test failed, its log tells what happened to the cluster.
//
// What the nodes draw follows from a seed, which the log of a failed test names; the
// environment variable BMQELECT_SEED gives it to another run. That makes the failure
// likely to come again, not certain: goroutines that are ready at one moment run in any
// order.
//
// f gets a testing.T of its own, which is the one to use. Cleanup functions that
// f registers with it run while the nodes are still up.
func Run(
	t *testing.T, nodes []cluster.NodeID, f func(t *testing.T, c *Cluster), options ...Option,
) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		t.Helper()
		c := newCluster(t, nodes)
		for _, option := range options {
			option(c)
		}
		t.Cleanup(c.end)
		for _, id := range nodes {
			if !slices.Contains(c.down, id) {
				c.Start(id)
			}
		}
		f(t, c)
	})
}

func newCluster(t *testing.T, nodes []cluster.NodeID) *Cluster {
	t.Helper()
	if len(nodes) == 0 {
		t.Fatal("clustertest: a cluster needs at least one node")
	}
	seeds, err := testhook.Seeds(1)
	if err != nil {
		t.Fatalf("clustertest: %v", err)
	}
	c := &Cluster{
		t: t, net: memnet.New(), ids: slices.Clone(nodes), story: newStory(), seed: seeds[0],
		hooks: func(cluster.NodeID, *testhook.Hooks) {},
		peers: map[cluster.NodeID]string{}, members: map[cluster.NodeID]*member{},
	}
	for _, id := range nodes {
		if c.members[id] != nil {
			t.Fatalf("clustertest: node %q is named twice", id)
		}
		c.peers[id] = net.JoinHostPort(string(id), "7401")
		c.members[id] = &member{
			id: id, dir: t.TempDir(), faults: fault.New(),
			state: stopped, since: time.Now(),
		}
	}
	return c
}

// end closes the nodes. It comes after all that the test itself cleans up.
func (c *Cluster) end() {
	if c.t.Failed() {
		c.t.Logf("clustertest: what happened, with %s=%d\n%s%s",
			testhook.SeedVariable, c.seed, c.story, c.news())
	}
	for _, id := range c.ids {
		if m := c.members[id]; m.up() {
			m.resume()
			c.close(m)
		}
	}
}
