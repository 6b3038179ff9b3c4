package cluster_test

import (
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/clustertest"
	"github.com/bmqelect/bmqelect/cluster/findings"
)

// A disk is lost and replaced, and then the old one is put back: it lacks the votes of the one
// between. It is refused, also by members that were restarted since, and with TLS one voter that
// knows is enough. The newer disk is welcome.
func TestADiskThatWasReplacedDoesNotComeBack(t *testing.T) {
	nothing := func(*clustertest.Cluster, cluster.NodeID, cluster.NodeID) {}
	restart := func(c *clustertest.Cluster, leader, other cluster.NodeID) {
		for _, id := range []cluster.NodeID{leader, other} {
			c.Stop(id)
			c.Start(id)
			c.AwaitLeader()
		}
	}
	forget := func(c *clustertest.Cluster, _, other cluster.NodeID) {
		c.Stop(other)
		c.Replace(other)
		c.Start(other)
	}
	for name, meanwhile := range map[string]interlude{
		"without TLS": nothing, "without TLS, members restart": restart,
		"TLS": nothing, "TLS, members restart": restart, "TLS, one member forgets it all": forget,
	} {
		t.Run(name, func(t *testing.T) {
			play := func(t *testing.T, c *clustertest.Cluster, _ string) { replaceDisk(t, c, meanwhile) }
			if name[:3] == "TLS" {
				runWithTLS(t, time.Hour, play)
				return
			}
			clustertest.Run(t, three, func(t *testing.T, c *clustertest.Cluster) { play(t, c, "") })
		})
	}
}

// interlude is what happens to the leader and the other member while a node is down.
type interlude func(c *clustertest.Cluster, leader, other cluster.NodeID)

func replaceDisk(t *testing.T, c *clustertest.Cluster, meanwhile interlude) {
	leader := c.AwaitLeader()
	var followers []cluster.NodeID
	for _, id := range c.Running() {
		if id != leader {
			followers = append(followers, id)
		}
	}
	id, other := followers[0], followers[1]
	save := func() (copied string) {
		c.Stop(id)
		copied = t.TempDir()
		require.NoError(t, os.CopyFS(copied, os.DirFS(c.DataDir(id))))
		return copied
	}
	put := func(disk string) {
		c.Replace(id)
		require.NoError(t, os.CopyFS(c.DataDir(id), os.DirFS(disk)))
		c.Start(id)
		time.Sleep(time.Minute)
	}
	time.Sleep(time.Minute)
	old := save()
	put(t.TempDir())
	newer := save()
	meanwhile(c, leader, other)
	time.Sleep(time.Minute)

	put(old)
	require.True(t, found(c.Node(c.Leader()), findings.DirectoryOutdated, id))
	require.False(t, linked(c.Node(id)), "it takes no part")
	c.Stop(id)
	put(newer)
	require.True(t, linked(c.Node(id)))
	require.Equal(t, c.Leader(), c.Node(id).Status().Groups[0].Leader)
}

// A committed record is on two of three voters, and one of these loses its disk. With the third it
// would elect a leader that lacks the record, if it counted by its name. §15.13
func TestALostDiskDoesNotCountForARecord(t *testing.T) {
	clustertest.Run(t, three, func(t *testing.T, c *clustertest.Cluster) {
		publish := func(value string) {
			_, err := c.Node(c.AwaitLeader()).Default().Publish(t.Context(), []byte(value),
				cluster.PublishOptions{})
			require.NoError(t, err)
		}
		holds := func(value string) func() bool {
			return func() bool {
				id := c.Leader()
				return id != "" && string(c.Node(id).Default().Record().Value) == value
			}
		}
		leader := c.AwaitLeader()
		time.Sleep(time.Minute)
		publish("old")
		time.Sleep(time.Minute)
		others := slices.DeleteFunc(c.Running(), func(id cluster.NodeID) bool { return id == leader })
		lost, third := others[0], others[1]
		c.Isolate(third)
		publish("new")
		c.Crash(leader)
		c.Crash(lost)
		c.Replace(lost)
		c.Heal()
		c.Start(lost)
		for range 180 {
			time.Sleep(time.Second)
			require.Empty(t, c.Leader())
		}
		c.Start(leader)
		c.Await("the record", holds("new"))

		time.Sleep(time.Minute)
		n := c.Node(c.Leader())
		require.Contains(t, []cluster.NodeID{leader, third}, c.Leader())
		require.ErrorContains(t, n.AddVoter(t.Context(), lost), "replace it")
		require.NoError(t, n.ReplaceVoter(t.Context(), lost, lost))
		time.Sleep(time.Minute)
		c.Crash(leader)
		c.Await("the record without its writer", holds("new"))
	})
}
