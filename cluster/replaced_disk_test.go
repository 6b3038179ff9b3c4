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
	"github.com/bmqelect/bmqelect/lsn"
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
		// It may not have seen the end of the old one, and refuse the new one.
		if err := c.Node(third).Forget(t.Context(), lost); err != nil {
			require.ErrorContains(t, err, "there is a link to it")
		}
		c.Start(leader)
		c.Await("the record", holds("new"))

		time.Sleep(time.Minute)
		n := c.Node(c.Leader())
		require.Contains(t, []cluster.NodeID{leader, third}, c.Leader())
		for _, id := range []cluster.NodeID{leader, third, lost} {
			st, peer := c.Node(id).Status(), lost
			require.Equal(t, []cluster.NodeID{lost}, st.Groups[0].Record.Uncounted)
			stats := c.Node(id).Stats()
			require.Equal(t, 2, stats.VotersReachable)
			require.Equal(t, id == lost, stats.Sums.NotCounted == 1)
			if id == lost {
				peer = ""
				require.Contains(t, st.Groups[0].Explanation, "it counts for nothing")
			}
			require.True(t, found(c.Node(id), findings.VoterUncounted, peer))
			require.Contains(t, st.Findings[0].Advice, "'bmqnode voters replace "+string(lost)+"'")
		}
		require.ErrorContains(t, n.AddVoter(t.Context(), lost, none), "replace it")
		require.NoError(t, n.ReplaceVoter(t.Context(), lost, lost, none))
		time.Sleep(time.Minute)
		require.Empty(t, n.Status().Findings)
		require.Equal(t, 3, n.Stats().VotersReachable)
		c.Crash(leader)
		c.Await("the record without its writer", holds("new"))
	})
}

// Two clusters of one name began apart, because of other voters, or because most nodes of one were
// wiped while the others were away. When they meet each keeps its record, and says what is wrong.
func TestRecordsOfTwoClustersThatMeet(t *testing.T) {
	six := []cluster.NodeID{"a", "b", "c", "d", "e", "f"}
	publish := func(t *testing.T, c *clustertest.Cluster, at cluster.NodeID, value string) {
		_, err := c.Node(at).Default().Publish(t.Context(), []byte(value), cluster.PublishOptions{})
		require.NoError(t, err)
	}
	keeps := func(t *testing.T, c *clustertest.Cluster, at, other cluster.NodeID, value string) {
		require.Equal(t, value, string(c.Node(at).Default().Record().Value))
		require.True(t, found(c.Node(at), findings.OtherLineage, other))
	}
	voters := func(cfg *cluster.Config) {
		cfg.Voters = six[:3]
		if cfg.Node > "c" {
			cfg.Voters = six[3:]
		}
		cfg.Election.NotCandidate = cfg.Node != "a" && cfg.Node != "d"
	}
	clustertest.Run(t, six, func(t *testing.T, c *clustertest.Cluster) {
		c.Partition(six[:3], six[3:])
		time.Sleep(time.Minute)
		publish(t, c, "a", "theirs")
		publish(t, c, "d", "ours")
		c.Heal()
		time.Sleep(time.Minute)
		keeps(t, c, "a", "d", "theirs")
		keeps(t, c, "d", "a", "ours")
		publish(t, c, "a", "theirs again")
		publish(t, c, "d", "ours again")
		time.Sleep(time.Second)
		keeps(t, c, "b", "d", "theirs again")
		keeps(t, c, "e", "a", "ours again")
	}, clustertest.Configure(voters))

	five := six[:5]
	only := func(cfg *cluster.Config) { cfg.Election.NotCandidate = cfg.Node > "a" && cfg.Node < "e" }
	clustertest.Run(t, five, func(t *testing.T, c *clustertest.Cluster) {
		publish(t, c, c.AwaitLeader(), "old")
		time.Sleep(time.Minute)
		for _, id := range five {
			c.Stop(id)
		}
		for _, id := range five[:3] {
			c.Replace(id)
			c.Start(id)
		}
		time.Sleep(time.Minute)
		publish(t, c, "a", "new")
		old := func() lsn.LSN { return c.Node("e").Status().Groups[0].Record.Accepted }
		c.Start("e")
		had := old()
		time.Sleep(time.Minute)
		require.Equal(t, had, old())
		require.True(t, found(c.Node("e"), findings.OtherLineage, "a"))
		require.Equal(t, "new", string(c.Node("b").Default().Record().Value))
	}, clustertest.Configure(only))
}
