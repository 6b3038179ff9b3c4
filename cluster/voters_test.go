package cluster_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/clustertest"
	"github.com/bmqelect/bmqelect/cluster/findings"
	"github.com/bmqelect/bmqelect/elector"
)

// voterChange follows docs/operations.md#changing-the-voters on a cluster.
type voterChange struct {
	*testCluster
	lists  map[cluster.NodeID][]cluster.NodeID // of each node's configuration
	events []*cluster.Subscription

	handovers int
}

// handOver lets the leader hand over.
func (c *voterChange) handOver(to cluster.NodeID) {
	c.handovers++
	require.NoError(c.t, c.Node(c.Leader()).Default().Transfer(c.t.Context(), to))
}

// start starts a node with a list, and comes back when its vote counts.
func (c *voterChange) start(id cluster.NodeID, voters []cluster.NodeID) {
	c.lists[id] = voters
	c.Start(id)
	c.events = append(c.events, c.Node(id).Subscribe(1000))
	time.Sleep(election)
}

// all gives every node that runs a list, except for those that have it, the leader last: it hands
// over to one that has the list.
func (c *voterChange) all(voters []cluster.NodeID, done ...cluster.NodeID) {
	leader := c.Leader()
	for _, id := range c.Running() {
		if id != leader && !slices.Contains(done, id) {
			c.Stop(id)
			c.start(id, voters)
			done = append(done, id)
		}
	}
	to := done[len(done)-1]
	c.handOver(to)
	c.Stop(leader)
	time.Sleep(election) // longer than a lease: nothing may hang on it
	c.start(leader, voters)
	require.Equal(c.t, to, c.Leader())
}

// differ are the nodes that find that the voters of another differ.
func (c *voterChange) differ() (ids []cluster.NodeID) {
	for id, n := range c.nodes() {
		if slices.ContainsFunc(n.Status().Findings, func(f findings.Finding) bool {
			return f.Kind == findings.VotersDiffer
		}) {
			ids = append(ids, id)
		}
	}
	return ids
}

// TestVotersAreChangedWithoutALeaderlessMoment goes from three voters to four and to five, and
// takes one of the first three away: d replaces c. Leadership moves by the handovers of the page
// alone.
func TestVotersAreChangedWithoutALeaderlessMoment(t *testing.T) {
	five := []cluster.NodeID{"a", "b", "c", "d", "e"}
	lists := map[cluster.NodeID][]cluster.NodeID{}
	withCluster(t, five, func(t *testing.T, inner *testCluster) {
		c := &voterChange{testCluster: inner, lists: lists}
		for _, id := range three {
			c.start(id, three)
		}
		c.AwaitLeader()
		for n := 4; n <= 5; n++ {
			added, voters := five[n-1], five[:n]
			c.start(added, voters) // before the others learn of it
			require.Contains(t, c.differ(), added)
			c.all(voters, added)
			require.Empty(t, c.differ())
		}
		if c.Leader() == "c" {
			c.handOver("d")
		}
		c.all([]cluster.NodeID{"a", "b", "d", "e"}, "c")
		c.Stop("c")
		time.Sleep(2 * time.Minute)
		require.Empty(t, c.differ())
		led := 0
		for _, s := range c.events {
			s.Close()
			for e := range s.Events() {
				switch {
				case e.From == elector.Leader && e.To != elector.Leader:
					require.Equal(t, "TRANSFERRED", e.Reason.String(), "%s", e.Transition)
				case e.From != elector.Leader && e.To == elector.Leader:
					led++
				}
			}
		}
		require.Equal(t, 1+c.handovers, led, "leaders")
	}, clustertest.Down(five...), clustertest.Configure(func(cfg *cluster.Config) {
		cfg.Voters = lists[cfg.Node]
	}))
}
