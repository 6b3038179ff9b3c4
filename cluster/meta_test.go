package cluster_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/clustertest"
)

// tellingStarts makes each process of a node have another Meta: "b 2" is the second of b.
func tellingStarts(voters ...cluster.NodeID) clustertest.Option {
	starts := map[cluster.NodeID]int{}
	return clustertest.Configure(func(cfg *cluster.Config) {
		starts[cfg.Node]++
		cfg.Meta, cfg.Voters = fmt.Sprintf("%s %d", cfg.Node, starts[cfg.Node]), voters
	})
}

// newsOf collects the leaders that OnNewLeader tells of on a node, until ctx ends.
func newsOf(ctx context.Context, all *sync.WaitGroup, n *cluster.Node) *diary {
	d := &diary{}
	all.Go(func() { _ = n.Default().Run(ctx, d.callbacks(untilToldToStop)) })
	return d
}

func (d *diary) newest() (l cluster.Leader) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.leaders) > 0 {
		l = d.leaders[len(d.leaders)-1]
	}
	return l
}

// Voters and an observer know the Meta of the leader, in every election.
func TestEveryNodeKnowsTheMetaOfTheLeader(t *testing.T) {
	ids := append([]cluster.NodeID{"observer"}, three...)
	withCluster(t, ids, func(t *testing.T, c *testCluster) {
		leader := c.elect()
		want, err := leader.Default().Leader(t.Context())
		require.NoError(t, err)
		require.Equal(t, cluster.Leader{Node: leader.ID(),
			Term: leader.Status().Groups[0].Term, Meta: string(leader.ID()) + " 1"}, want)
		events := c.Node("observer").Subscribe(1)
		defer events.Close()
		late := c.open("late", nil) // links are up already
		time.Sleep(election)
		for id, n := range c.nodes() {
			l, err := n.Default().Leader(t.Context())
			require.NoError(t, err)
			require.Equal(t, want, l, id)
			require.Equal(t, want.Meta, n.Status().Groups[0].LeaderMeta, id)
			l, err = late[id].Leader(t.Context())
			require.NoError(t, err)
			require.Equal(t, string(l.Node)+" 1", l.Meta, id)
		}
		e := <-events.Events()
		require.Equal(t, string(e.Leader)+" 1", e.LeaderMeta)
	}, tellingStarts(three...))
}

// The leader's process is killed and started again, over and over, so that old and new processes
// lead in turn. Every node tells the Meta of the process that held each leadership.
func TestTheMetaIsThatOfTheProcessThatLeads(t *testing.T) {
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		known := map[cluster.Leader]bool{} // as the leaders themselves have it
		var told []*diary
		for _, id := range three {
			told = append(told, newsOf(ctx, &all, c.Node(id)))
		}
		for range 6 {
			id := c.AwaitLeader()
			l, err := c.Node(id).Default().Leader(t.Context())
			require.NoError(t, err)
			known[l] = true
			c.Await("all know it", func() bool {
				for _, n := range c.nodes() {
					if s := n.Status().Groups[0]; s.Term != l.Term || s.LeaderMeta != l.Meta {
						return false
					}
				}
				return true
			})
			c.Restart(id)
			told = append(told, newsOf(ctx, &all, c.Node(id)))
		}
		cancel()
		all.Wait()
		count := 0
		for _, d := range told {
			for _, l := range d.leaders {
				require.True(t, strings.HasPrefix(l.Meta, string(l.Node)+" "), l)
				for k := range known {
					if k.Node == l.Node && k.Term == l.Term {
						require.Equal(t, k, l)
						count++
					}
				}
			}
		}
		require.GreaterOrEqual(t, count, 3*len(known), "three nodes were told of each")
	}, tellingStarts(three...), clustertest.Configure(awaitCampaign))
}

// A follower may have a link to the next process of the leader's name while it still follows the
// old one. Terms begin again if the disk was lost.
func TestTheNextProcessOfALoneVoterHasItsOwnMeta(t *testing.T) {
	withCluster(t, []cluster.NodeID{"a", "o"}, func(t *testing.T, c *testCluster) {
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		d := newsOf(ctx, &all, c.Node("o"))
		newest := func(meta string) func() bool {
			return func() bool { return d.newest().Meta == meta }
		}
		c.Await("a leader", newest("a 1"))
		first := d.newest()
		c.Crash("a")
		c.Replace("a")
		c.Start("a")
		c.Await("the process on a new disk", newest("a 2"))
		require.Equal(t, cluster.Leader{Node: "a", Term: first.Term, Meta: "a 2"}, d.newest())
		for i := range 5 {
			c.Restart("a")
			c.Await("the next process", newest(fmt.Sprintf("a %d", i+3)))
		}
		cancel()
		all.Wait()
		require.Len(t, d.leaders, 7, "each once: %v", d.leaders)
	}, tellingStarts("a"))
}
