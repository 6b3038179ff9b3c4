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

// Cluster is the cluster of one test. Its methods fail the test if they cannot do their
// work, so they must be called from the goroutine that runs the test. They take no virtual
// time, except where their comment says so.
type Cluster struct {
	t       *testing.T
	net     *memnet.Network
	edits   []func(*cluster.Config)
	ids     []cluster.NodeID // in the order given
	peers   map[cluster.NodeID]string
	members map[cluster.NodeID]*member
	story   *story
	told    string // the newest result of Explain in the test's log
	hooks   func(cluster.NodeID, *testhook.Hooks)
	seed    uint64 // of the nodes' random numbers
	starts  uint64 // how many there were, of all nodes
	down    []cluster.NodeID
}

// member is a node through all of its starts.
type member struct {
	id      cluster.NodeID
	dir     string
	faults  *fault.Faults
	state   state
	since   time.Time            // when the state began
	limit   *time.Timer          // fails the test if a pause lasts too long
	process *testprocess.Process // of the newest start, like the next two fields
	config  cluster.Config
	node    *cluster.Node
}

// state is whether a node runs, as the test decided.
type state string

const (
	running state = "running"
	paused  state = "paused"
	stopped state = "stopped"
	crashed state = "crashed"
)

// up reports whether the node has a process.
func (m *member) up() bool { return m.state == running || m.state == paused }

// become sets the state of a node.
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

// demand fails the test unless m is in one of the states that an action needs.
func (c *Cluster) demand(m *member, action string, states ...state) {
	c.t.Helper()
	if !slices.Contains(states, m.state) {
		c.t.Fatalf("clustertest: %s %s: the node is %s, for %s now",
			action, m.id, m.state, round(time.Since(m.since)))
	}
}

// Node returns the node of the newest start; that node is closed if it has crashed or stopped
// since.
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

// Closed must be called after the test itself has closed a node, with Node.Close. The node
// counts as stopped then, and can be started again.
func (c *Cluster) Closed(id cluster.NodeID) {
	c.t.Helper()
	m := c.member(id)
	c.demand(m, "note the close of", running)
	c.become(m, stopped)
}

// Start starts a node that is stopped or crashed, on the same disk.
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

// Crash ends a node as SIGKILL does: its connections end without a goodbye, and dials to it
// are refused. That proves its death to the others, so that they need not wait until its
// lease ends, even if it was paused. Nodes that are cut off from it do not learn of its
// death.
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
// goodbye to the others. That takes virtual time if links are cut.
func (c *Cluster) Stop(id cluster.NodeID) {
	c.t.Helper()
	m := c.member(id)
	c.demand(m, "stop", running)
	c.become(m, stopped)
	c.close(m)
}

// DataDir returns the data directory of a node.
func (c *Cluster) DataDir(id cluster.NodeID) string {
	c.t.Helper()
	return c.member(id).dir
}

// Replace gives a node that is stopped or crashed a new, empty disk, as if another machine
// had its name from now on.
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
