package cluster_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/clustertest"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/lsn"
)

// minTerm sets MinTerm to the result of least at each start of a node.
func minTerm(least func(id cluster.NodeID) lsn.Term) clustertest.Option {
	return clustertest.Configure(func(cfg *cluster.Config) { cfg.MinTerm = least(cfg.Node) })
}

func TestAClusterThatLostEveryDiskStartsAboveItsFences(t *testing.T) {
	var least lsn.Term
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		var fence lsn.Fence
		admit := func() error {
			token, err := c.Node(c.AwaitLeader()).NextLSN()
			require.NoError(t, err)
			return fence.Admit(token)
		}
		restart := func(disks bool) {
			for _, id := range three {
				c.Crash(id)
				if !disks {
					c.Replace(id)
				}
			}
			for _, id := range three {
				c.Start(id)
			}
		}
		require.NoError(t, admit())
		for range 3 {
			require.NoError(t, c.Node(c.AwaitLeader()).Transfer(t.Context(), ""))
			require.NoError(t, admit())
		}
		seen := fence.Newest().Term
		restart(false)
		require.EqualError(t, admit(), fmt.Sprintf("lsn: stale: got 1.1 after %s; if every data "+
			"directory was lost, start the nodes with a minimum term above %d (MinTerm, --min-term): "+
			"docs/operations.md#all-disks-are-gone", fence.Newest(), seen))
		least = seen // not above, which is as good: it is a term that nobody leads in
		restart(false)
		require.NoError(t, admit())
		jobs := c.open("jobs", nil)
		time.Sleep(election)
		require.Greater(t, jobs[c.leader("jobs").ID()].Status().Term, seen, "of every election")
		least = 0
		restart(true)
		require.NoError(t, admit(), "it is durable")
	}, minTerm(func(cluster.NodeID) lsn.Term { return least }))
}

// If minimum terms differ, one node leads all the time, and soon in a term above the highest
// minimum. If a majority has that minimum, nobody leads below it. An observer follows, whatever its
// own minimum is.
func TestNodesMayDifferInTheirMinimumTerm(t *testing.T) {
	const least lsn.Term = 37
	for _, have := range [][]cluster.NodeID{
		{"a"}, {"b"}, {"c"}, {"a", "b"}, {"a", "c"}, {"b", "c"}, three,
	} {
		t.Run(fmt.Sprint(have), func(t *testing.T) {
			withCluster(t, append(three, "d"), func(t *testing.T, c *testCluster) {
				var told []*cluster.Subscription
				for _, id := range three {
					told = append(told, c.Node(id).Subscribe(100))
				}
				time.Sleep(2 * election)
				require.Greater(t, c.leader().Status().Groups[0].Term, least)
				elected := 0
				for _, s := range told {
					s.Close()
					for e := range s.Events() {
						if e.To != elector.Leader {
							continue
						}
						require.True(t, e.Term > least || len(have) == 1, "%v", e)
						if e.From != elector.Leader {
							elected++
						}
					}
				}
				require.Equal(t, 1, elected, "it re-affirms itself at most")
			}, clustertest.Configure(func(cfg *cluster.Config) { cfg.Voters = three }),
				minTerm(func(id cluster.NodeID) lsn.Term {
					switch {
					case id == "d":
						return 1000
					case slices.Contains(have, id):
						return least
					}
					return 0
				}))
		})
	}
}

// A cluster that leads below its fences need not stop: nodes are restarted one by one.
func TestAMinimumTermThatComesLaterUnseatsNobody(t *testing.T) {
	var least lsn.Term
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		leader := c.elect()
		work, err := leader.Default().Campaign(t.Context())
		require.NoError(t, err)
		defer work.Release()
		for i, id := range c.others(leader) {
			least = lsn.Term(100 - i) // the second starts in a higher term already
			c.Stop(id)
			c.Start(id)
			time.Sleep(election)
			require.True(t, work.Valid())
			token, err := work.NextLSN()
			require.NoError(t, err)
			require.Equal(t, lsn.Term(101), token.Term)
			require.Equal(t, leader, c.leader())
		}
	}, minTerm(func(cluster.NodeID) lsn.Term { return least }))
}
