package recovery_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/clustertest"
	"github.com/bmqelect/bmqelect/cluster/recovery"
	"github.com/bmqelect/bmqelect/lsn"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// aboveTheLost is above every term that the lost voters may have used.
const aboveTheLost lsn.Term = 1_000_000_000

// disaster is a cluster that loses voters for ever.
type disaster struct {
	*clustertest.Cluster
	t *testing.T
}

// run starts the voters, and waits until one of them leads.
func run(t *testing.T, voters []cluster.NodeID, f func(disaster), options ...clustertest.Option) {
	clustertest.Run(t, voters, func(t *testing.T, c *clustertest.Cluster) {
		c.AwaitLeader()
		f(disaster{c, t})
	}, options...)
}

// declare crashes the lost voters, stops the others, and declares the emergency on each of the
// others.
func (d disaster) declare(voters, lost []cluster.NodeID) {
	e := recovery.Emergency{
		Cluster: cluster.DefaultCluster, Voters: voters, Lost: lost, Reason: "flood",
	}
	for _, id := range lost {
		d.Crash(id)
	}
	for _, id := range voters {
		if !slices.Contains(lost, id) {
			d.Stop(id)
			require.NoError(d.t, recovery.DeclareLost(d.DataDir(id), e))
		}
	}
}

func (d disaster) start(ids ...cluster.NodeID) {
	for _, id := range ids {
		d.Start(id)
	}
}

// leader waits for a leader, and returns it with a new token.
func (d disaster) leader() (*cluster.Node, lsn.LSN) {
	n := d.Node(d.AwaitLeader())
	token, err := n.NextLSN()
	require.NoError(d.t, err)
	return n, token
}

func TestSurvivorsGoOnAfterAnEmergency(t *testing.T) {
	run(t, five, func(d disaster) {
		_, token := d.leader()
		d.declare(five, lost)
		for range 2 { // the second start is like the first
			d.start(left...)
			leader, next := d.leader()
			require.Positive(d.t, next.Compare(token), "tokens rise: %s after %s", next, token)
			require.Greater(d.t, next.Term, aboveTheLost)
			token = next

			st := leader.Status()
			g := st.Groups[0]
			require.Equal(d.t, left, g.Voters)
			require.Equal(d.t, 2, g.Quorum)
			d.Await("both to back the leader", func() bool {
				g = leader.Status().Groups[0]
				return len(g.Supporters) == 2
			})
			require.Contains(d.t, g.Explanation, "this node leads, backed by 2 of 2 voters (2 needed); "+
				"EMERGENCY: c, d, e declared lost at 2000-01-01T")
			require.Len(d.t, st.Emergencies, 1)
			require.Equal(d.t, lost, st.Emergencies[0].Lost)
			require.Equal(d.t, "flood", st.Emergencies[0].Reason)
			for _, id := range left {
				d.Stop(id)
			}
		}
	})
}

// The lost voters had leaders in terms of which the survivors never heard.
func TestFencingTokensRiseAboveThoseOfTheLost(t *testing.T) {
	run(t, five, func(d disaster) {
		d.Partition(left)
		time.Sleep(20 * time.Second)
		var newest lsn.LSN
		for _, to := range []cluster.NodeID{"c", "d", "e", "c", "d"} {
			leader, _ := d.leader()
			if id := leader.Status().Node; id != to {
				require.NoError(d.t, leader.Transfer(d.t.Context(), to))
			}
			leader, newest = d.leader()
			require.Equal(d.t, to, leader.Status().Node)
			time.Sleep(time.Second) // its followers ack, so it can hand over
		}
		for _, id := range left {
			require.Less(d.t, d.Node(id).Status().Groups[0].Term+2, newest.Term, "%s never heard of it", id)
		}
		d.declare(five, lost)
		d.Heal()
		d.start(left...)
		_, token := d.leader()
		require.Positive(d.t, token.Compare(newest), "%s after %s", token, newest)
	})
}

func TestLostNodeThatComesBackIsNotCountedNotElectedAndCannotLead(t *testing.T) {
	preferC := func(cfg *cluster.Config) {
		cfg.Election.Priority = map[cluster.NodeID]int{"c": 9}[cfg.Node]
	}
	run(t, five, func(d disaster) {
		d.declare(five, lost)
		d.start(left...)
		leader, token := d.leader()
		other := left[0]
		if other == leader.Status().Node {
			other = left[1]
		}

		d.Start("c") // with its old disk and the old configuration
		time.Sleep(10 * time.Minute)
		now, next := d.leader()
		require.Same(d.t, leader, now, "nobody is disturbed")
		require.Equal(d.t, token.Term, next.Term)
		st := leader.Status()
		require.Equal(d.t, st.Node, d.Node("c").Status().Groups[0].Leader, "c follows")
		require.Equal(d.t, left, st.Groups[0].Supporters, "c does not count")
		require.Positive(d.t, st.Anomalies["lost-node-back"], "it is seen")
		require.ErrorContains(d.t, leader.Transfer(d.t.Context(), "c"), "not one of the voters")

		d.Isolate(other)
		for range 120 {
			time.Sleep(time.Second)
			require.False(d.t, d.Node("c").IsLeader(), "nobody elects c")
		}
		require.False(d.t, leader.IsLeader(), "c is no replacement for a voter")
		require.Contains(d.t, leader.Status().Groups[0].Explanation, "2 of 2 voters needed, 1 reachable")
	}, clustertest.Configure(preferC))
}

// If all lost voters come back, they are a quorum of the old voters. They follow the survivors'
// leader as long as they hear it.
func TestLostQuorumThatComesBackFollowsALeaderThatItHears(t *testing.T) {
	run(t, five, func(d disaster) {
		d.declare(five, lost)
		d.start(left...)
		leader, token := d.leader()
		d.start(lost...)
		for range 120 {
			time.Sleep(time.Second)
			now, next := d.leader()
			require.Same(d.t, leader, now)
			require.Equal(d.t, token.Term, next.Term)
		}
	})
}

func TestSoleSurvivorLeadsAloneInEveryElection(t *testing.T) {
	voters := five[:3]
	run(t, voters, func(d disaster) {
		d.declare(voters, voters[1:])
		d.Start("a")
		time.Sleep(time.Second)
		require.True(d.t, d.Node("a").IsLeader())
		e, err := d.Node("a").Election("payments", cluster.ElectionConfig{})
		require.NoError(d.t, err)
		time.Sleep(time.Second)
		require.True(d.t, e.Status().Leading)
		require.Greater(d.t, e.Status().Term, aboveTheLost, "an election that this node never knew")
	})
}

func TestReadmittedNodeVotesAgain(t *testing.T) {
	run(t, five, func(d disaster) {
		d.declare(five, lost)
		for i, back := range lost {
			for _, id := range left {
				require.NoError(d.t, recovery.Readmit(d.DataDir(id), cluster.DefaultCluster, back))
			}
			d.Replace(back)
			up := five[:len(left)+i+1]
			d.start(up...)
			d.Await("the replacement to vote", func() bool {
				if d.Leader() == "" {
					return false
				}
				g := d.Node(d.Leader()).Status().Groups[0]
				return slices.Contains(g.Voters, back) && slices.Contains(g.Supporters, back)
			})
			for _, id := range up { // whose lists differ as they are to
				require.Empty(d.t, d.Node(id).Status().Findings, "%s", id)
			}
			for _, id := range up {
				d.Stop(id)
			}
		}
		d.Start("a")
		st := d.Node("a").Status()
		require.Equal(d.t, five, st.Groups[0].Voters)
		require.NotContains(d.t, st.Groups[0].Explanation, "EMERGENCY")
		require.Len(d.t, st.Emergencies, 1, "it stays on record")
		require.Empty(d.t, st.Emergencies[0].Missing())
	})
}

// recordOf waits until a leader shows a record with that value, and returns it.
func (d disaster) recordOf(value string) (r cluster.Record) {
	d.Await("the record "+value, func() bool {
		if d.Leader() == "" {
			return false
		}
		r = d.Node(d.Leader()).Default().Record()
		return string(r.Value) == value
	})
	return r
}

func (d disaster) publish(value string) {
	_, err := d.Node(d.AwaitLeader()).Default().Publish(d.t.Context(), []byte(value),
		cluster.PublishOptions{})
	require.NoError(d.t, err)
}

// What the lost committed without the survivors is lost, and so are they as voters. §15.12
func TestTheNewestRecordOfTheSurvivorsGoesOn(t *testing.T) {
	run(t, five, func(d disaster) {
		d.publish("first")
		time.Sleep(20 * time.Second) // all have it
		d.Partition(left)
		time.Sleep(20 * time.Second)
		d.publish("unseen")
		d.declare(five, lost)
		d.Heal()
		d.start(left...)
		r := d.recordOf("first")
		require.Greater(t, r.LSN.Term, aboveTheLost)
		require.Len(t, r.Voters, 2)
		d.publish("second")

		leader := d.Node(d.Leader())
		d.Replace("c")
		d.Start("c")
		time.Sleep(10 * time.Second)
		require.ErrorContains(t, leader.AddVoter(d.t.Context(), "c", cluster.VoterOptions{}),
			"c was declared lost in an emergency")
		d.Stop("c")
		for _, id := range left {
			d.Stop(id)
			require.NoError(t, recovery.Readmit(d.DataDir(id), cluster.DefaultCluster, "c"))
		}
		d.start("a", "b", "c")
		require.Len(t, d.recordOf("second").Voters, 2, "c is no voter yet")
		time.Sleep(10 * time.Second)
		require.NoError(t, d.Node("c").AddVoter(d.t.Context(), "c", cluster.VoterOptions{}))
		r = d.recordOf("second")
		require.Len(t, r.Voters, 3)
		require.Equal(t, d.Node("c").Status().Identity, identity(r, "c"), "its new directory")
		d.Stop("a")
		d.publish("without a")
	})
}

// identity is that of a voter's directory as the record has it.
func identity(r cluster.Record, id cluster.NodeID) string {
	for _, v := range r.Voters {
		if v.Node == id {
			return v.Identity
		}
	}
	return ""
}

func TestNodeDoesNotStartWhereAnEmergencyForbidsIt(t *testing.T) {
	ctx := context.Background()
	declared := func(node cluster.NodeID, retire bool) cluster.Config {
		cfg := cluster.Config{
			Node: node, Voters: five, DataDir: t.TempDir(),
			MeshAddr: "127.0.0.1:0", GossipAddr: "127.0.0.1:0",
		}
		n, err := cluster.Start(ctx, cfg)
		require.NoError(t, err)
		require.NoError(t, n.Close(ctx))
		require.NoError(t, recovery.DeclareLost(cfg.DataDir, recovery.Emergency{
			Cluster: cluster.DefaultCluster, Voters: five, Lost: lost, Retire: retire,
		}))
		return cfg
	}
	retired, quorum, nobody := declared("c", true), declared("a", false), declared("a", false)
	quorum.Election.Quorum = 3
	nobody.Voters = []cluster.NodeID{"c", "d"}
	for want, cfg := range map[string]cluster.Config{
		"that of a voter that was declared lost (c, d, e declared lost at ":    retired,
		"quorum is 3, but must be at most 2: of the voters c, d, e were de":    quorum,
		"all voters of the configuration, c, d, were declared lost":            nobody,
		fmt.Sprintf("start of node c: the data directory %s", retired.DataDir): retired,
	} {
		_, err := cluster.Start(ctx, cfg)
		require.ErrorContains(t, err, want)
	}
	quorum.Election.Quorum = 0
	n, err := cluster.Start(ctx, quorum)
	require.NoError(t, err, "a refused start leaves nothing behind")
	_, err = n.Election("x", cluster.ElectionConfig{Quorum: 3})
	require.ErrorContains(t, err, "Election.Quorum is 3")
	require.NoError(t, n.Close(ctx))
}
