package clustertest

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/internal/testhook"
	"github.com/bmqelect/bmqelect/cluster/internal/testprocess"
	"github.com/bmqelect/bmqelect/internal/memnet"
	"github.com/bmqelect/bmqelect/netmesh/fault"
)

// Cluster is the cluster of one test. Its methods fail the test if they cannot
// do what they are for, so they must be called from the goroutine that runs the
// test. Unless they say otherwise they take no virtual time.
type Cluster struct {
	t       *testing.T
	net     *memnet.Network
	edits   []func(*cluster.Config)
	ids     []cluster.NodeID // in the order given
	peers   map[cluster.NodeID]string
	members map[cluster.NodeID]*member
	story   *story
	told    string // what Explain said in the test's log already
	hooks   func(cluster.NodeID, *testhook.Hooks)
	seed    uint64 // of what the nodes draw
	starts  uint64 // of all nodes
	down    []cluster.NodeID
}

// member is a node through all of its starts.
type member struct {
	id      cluster.NodeID
	dir     string
	faults  *fault.Faults
	state   state
	since   time.Time            // of the state
	limit   *time.Timer          // of a pause
	process *testprocess.Process // of the newest start, like what follows
	config  cluster.Config
	node    *cluster.Node
}

// state is what the test did to a node.
type state string

const (
	running state = "running"
	paused  state = "paused"
	stopped state = "stopped"
	crashed state = "crashed"
)

// up reports whether the node has a process.
func (m *member) up() bool { return m.state == running || m.state == paused }

// become notes that the test did something to a node.
func (c *Cluster) become(m *member, s state) {
	m.state, m.since = s, time.Now()
	c.story.add("%s is %s", m.id, s)
}

// member returns a node of the cluster.
func (c *Cluster) member(id cluster.NodeID) *member {
	c.t.Helper()
	m := c.members[id]
	if m == nil {
		c.t.Fatalf("clustertest: no node %q; the cluster has %v", id, c.ids)
	}
	return m
}

// demand fails the test if m is in none of the states that an action needs.
func (c *Cluster) demand(m *member, action string, states ...state) {
	c.t.Helper()
	if !slices.Contains(states, m.state) {
		c.t.Fatalf("clustertest: %s %s: the node is %s, for %s now",
			action, m.id, m.state, round(time.Since(m.since)))
	}
}

// Node returns a node: the one of its newest start, which is closed if it has
// crashed or stopped since.
func (c *Cluster) Node(id cluster.NodeID) *cluster.Node {
	c.t.Helper()
	return c.member(id).node
}

// Running returns the nodes that run and are not paused, in the order given to Run.
func (c *Cluster) Running() (ids []cluster.NodeID) {
	for _, id := range c.ids {
		if c.members[id].state == running {
			ids = append(ids, id)
		}
	}
	return ids
}

// Closed notes that the test itself closed a node, with Node.Close: it counts as
// stopped, and can be started again.
func (c *Cluster) Closed(id cluster.NodeID) {
	c.t.Helper()
	m := c.member(id)
	c.demand(m, "note the close of", running)
	c.become(m, stopped)
}

// Start starts a node that is stopped or crashed, on the disk that it left.
func (c *Cluster) Start(id cluster.NodeID) {
	c.t.Helper()
	m := c.member(id)
	c.demand(m, "start", stopped, crashed)
	c.starts++
	s := testhook.Hooks{Peers: c.peers, Entropy: rand.New(rand.NewPCG(c.seed, c.starts)).Uint64}
	c.hooks(id, &s)
	m.process = testprocess.New(c.net, string(id))
	m.config = c.configure(m)
	n, err := cluster.Start(m.process.Context(s), m.config)
	if err != nil {
		c.t.Fatalf("clustertest: %v", err)
	}
	m.node = n
	c.become(m, running)
	go c.story.follow(id, n.Subscribe(storyBuffer))
}

// configure returns the configuration of a node.
func (c *Cluster) configure(m *member) cluster.Config {
	own := cluster.Config{
		Node: m.id, Voters: slices.Clone(c.ids),
		DataDir: m.dir, MeshAddr: c.peers[m.id], Faults: m.faults,
		Insecure: true, // nobody else is in this network
	}
	cfg := own
	for _, edit := range c.edits {
		edit(&cfg)
	}
	cfg.Node, cfg.DataDir, cfg.Faults = own.Node, own.DataDir, own.Faults
	cfg.MeshAddr, cfg.AdvertiseMesh = own.MeshAddr, ""
	return cfg
}

// Restart crashes a node, unless it is down already, and starts it again.
func (c *Cluster) Restart(id cluster.NodeID) {
	c.t.Helper()
	if c.member(id).up() {
		c.Crash(id)
	}
	c.Start(id)
}

// Crash ends a node as SIGKILL does: its connections end without a word, and
// where it listened dials are refused. The others take that as proof of its
// death, so that they need not wait for its lease to end, also if it was paused. Those
// that are cut off from a node learn nothing of its death.
func (c *Cluster) Crash(id cluster.NodeID) {
	c.t.Helper()
	m := c.member(id)
	c.demand(m, "crash", running, paused)
	c.become(m, crashed)
	m.process.Kill()
	m.resume()
	_ = m.node.Close(m.process.Life()) // a dead process hands nothing over, and its work has ended
}

// Stop ends a node as SIGTERM does: it hands over to the best follower and says
// goodbye to the others. That takes virtual time if the network is at fault.
func (c *Cluster) Stop(id cluster.NodeID) {
	c.t.Helper()
	m := c.member(id)
	c.demand(m, "stop", running)
	c.become(m, stopped)
	c.close(m)
}

// DataDir returns the directory that is a node's disk.
func (c *Cluster) DataDir(id cluster.NodeID) string {
	c.t.Helper()
	return c.member(id).dir
}

// Replace gives a node that is stopped or crashed a new disk, which is empty. Its next
// start is that of another machine under the old name.
func (c *Cluster) Replace(id cluster.NodeID) {
	c.t.Helper()
	m := c.member(id)
	c.demand(m, "replace", stopped, crashed)
	m.dir = c.t.TempDir()
	c.story.add("%s has a new disk", id)
}

// closeTime is longer than a node ever needs to close.
const closeTime = time.Minute

func (c *Cluster) close(m *member) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	if err := m.node.Close(ctx); err != nil {
		c.t.Errorf("clustertest: close node %s: %v", m.id, err)
	}
}
