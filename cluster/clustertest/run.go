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

// Configure calls edit before every start of a node, to change its configuration;
// Config.Node says which node it is. All nodes are voters unless edit changes Voters.
// Changes of the data directory, the addresses and the faults have no effect. Configure may
// be given more than once.
func Configure(edit func(cfg *cluster.Config)) Option {
	return func(c *Cluster) { c.edits = append(c.edits, edit) }
}

// Hooks calls edit before every start of a node, to replace its clock, disk and more. It is
// for this module's own tests: other modules cannot write such an edit.
func Hooks(edit func(id cluster.NodeID, s *testhook.Hooks)) Option {
	return func(c *Cluster) { c.hooks = edit }
}

// Network calls edit before the first node starts, to set up the network in memory. It is
// for this module's own tests, like Hooks.
func Network(edit func(*memnet.Network)) Option {
	return func(c *Cluster) { edit(c.net) }
}

// Down names nodes that Run does not start; the test may call Start.
func Down(ids ...cluster.NodeID) Option {
	return func(c *Cluster) { c.down = append(c.down, ids...) }
}

// Run starts a cluster of the given nodes, except those that are Down, and runs f as a test
// with it, in virtual time. It must not be called within a bubble of testing/synctest. When f
// has returned or failed, Run closes the nodes; the log of a failed test says what happened
// to the cluster.
//
// A seed determines the random numbers of the nodes. The log of a failed test names the seed;
// the environment variable BMQELECT_SEED sets it for another run. The failure is then likely
// to come again, but not certain: goroutines that are ready at one moment run in any order.
//
// f must use its own testing.T. The nodes are still up when the cleanup functions run that f
// registers with it.
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
	seeds, err := newSeeds(1)
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

// end closes the nodes, after all cleanup functions of the test itself.
func (c *Cluster) end() {
	if c.t.Failed() {
		c.t.Logf("clustertest: what happened, with %s=%d\n%s%s",
			seedVariable, c.seed, c.story, c.news())
	}
	for _, id := range c.ids {
		if m := c.members[id]; m.up() {
			m.resume()
			c.close(m)
		}
	}
}
