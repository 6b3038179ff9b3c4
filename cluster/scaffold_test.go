package cluster_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/clustertest"
	"github.com/bmqelect/bmqelect/cluster/internal/testhook"
	"github.com/bmqelect/bmqelect/cluster/internal/testprocess"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/memnet"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	one   = []cluster.NodeID{"a"}
	three = []cluster.NodeID{"a", "b", "c"}
)

var article = elector.Article()

const (
	// articleMargin is the default stop margin of the article's timers.
	articleMargin = 450 * time.Millisecond
	// election is longer than the initial wait, a back-off and an election take.
	election = 10 * time.Second
)

// testCluster adds to a cluster of clustertest what many tests of this package need.
type testCluster struct {
	*clustertest.Cluster
	t   *testing.T
	ids []cluster.NodeID
	net *memnet.Network
	// onWrite replaces the writes of a node to its disk, unless a test has hooks of its own.
	onWrite sync.Map // of func(write func() error) error, by cluster.NodeID
}

// withCluster is clustertest.Run.
func withCluster(t *testing.T, ids []cluster.NodeID, f func(*testing.T, *testCluster),
	options ...clustertest.Option,
) {
	t.Helper()
	c := &testCluster{ids: ids}
	network := clustertest.Network(func(net *memnet.Network) { c.net = net })
	disks := clustertest.Hooks(func(id cluster.NodeID, h *testhook.Hooks) {
		h.Disk = func(write func() error) error {
			if f, replaced := c.onWrite.Load(id); replaced {
				return f.(func(func() error) error)(write)
			}
			return write()
		}
	})
	clustertest.Run(t, ids, func(t *testing.T, inner *clustertest.Cluster) {
		c.Cluster, c.t = inner, t
		f(t, c)
	}, append([]clustertest.Option{network, disks}, options...)...)
}

// config is the configuration of a node that a test itself starts, with context.
func (c *testCluster) config(id cluster.NodeID) cluster.Config {
	return cluster.Config{
		Node: id, Voters: c.ids, DataDir: c.DataDir(id), MeshAddr: c.peers()[id], Insecure: true,
	}
}

func (c *testCluster) context(id cluster.NodeID) context.Context {
	return testprocess.New(c.net, string(id)).Context(testhook.Hooks{Peers: c.peers()})
}

func (c *testCluster) peers() map[cluster.NodeID]string {
	peers := map[cluster.NodeID]string{}
	for _, id := range c.ids {
		peers[id] = string(id) + ":7401"
	}
	return peers
}

func (c *testCluster) stopAll() {
	for _, id := range c.Running() {
		c.Stop(id)
	}
}

func awaitCampaign(cfg *cluster.Config) { cfg.Election.AwaitCampaign = true }

// nodes are those that run.
func (c *testCluster) nodes() map[cluster.NodeID]*cluster.Node {
	nodes := map[cluster.NodeID]*cluster.Node{}
	for _, id := range c.Running() {
		nodes[id] = c.Node(id)
	}
	return nodes
}

// leader is the node that leads in an election, on which all that run agree; it fails the test if
// there is none.
func (c *testCluster) leader(group ...string) *cluster.Node {
	c.t.Helper()
	id := c.Leader(group...)
	require.NotEmpty(c.t, id, "no leader")
	for other, n := range c.nodes() {
		e, err := n.Lookup(append(group, cluster.DefaultGroup)[0])
		require.NoError(c.t, err)
		require.Equal(c.t, id, e.Status().Leader, "as %s sees it", other)
	}
	return c.Node(id)
}

// elect gives the nodes time for an election, and returns the leader.
func (c *testCluster) elect() *cluster.Node {
	c.t.Helper()
	time.Sleep(election)
	return c.leader()
}

func (c *testCluster) others(not *cluster.Node) (ids []cluster.NodeID) {
	for _, id := range c.ids {
		if id != not.ID() {
			ids = append(ids, id)
		}
	}
	return ids
}

// open opens an election on every node, with a rank of its own on each.
func (c *testCluster) open(
	group string, priority map[cluster.NodeID]int,
) map[cluster.NodeID]*cluster.Election {
	elections := map[cluster.NodeID]*cluster.Election{}
	for id, n := range c.nodes() {
		e, err := n.Election(group, cluster.ElectionConfig{Priority: priority[id]})
		require.NoError(c.t, err)
		elections[id] = e
	}
	return elections
}

// requireNone ends a subscription that must have got no event.
func requireNone(t *testing.T, events *cluster.Subscription) {
	t.Helper()
	events.Close()
	for e := range events.Events() {
		require.Fail(t, "a transition", "%+v", e.Transition)
	}
}

// contest is a cluster whose nodes all campaign.
type contest struct {
	*testCluster
	won chan *cluster.Leadership // in the order in which they came
}

// campaign lets nodes campaign, once each.
func (c *testCluster) campaign(ids ...cluster.NodeID) *contest {
	o := &contest{c, make(chan *cluster.Leadership, 100)}
	for _, id := range ids {
		o.join(c.Node(id))
	}
	return o
}

func (o *contest) join(n *cluster.Node) {
	go func() {
		if l, err := n.Default().Campaign(context.Background()); err == nil {
			o.won <- l
		}
	}()
}

// withContest runs f with a cluster of three in which every node campaigns, and the
// first leadership.
func withContest(t *testing.T, f func(*testing.T, *contest, *cluster.Leadership)) {
	t.Helper()
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		o := c.campaign(three...)
		l := o.next()
		time.Sleep(time.Second) // the others have acked heartbeats
		f(t, o, l)
	})
}

// next is the next leadership that anybody gets.
func (o *contest) next() *cluster.Leadership {
	o.t.Helper()
	select {
	case l := <-o.won:
		return l
	case <-time.After(time.Minute):
		require.Fail(o.t, "nobody leads")
		return nil
	}
}
