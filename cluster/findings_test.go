package cluster_test

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/clustertest"
	"github.com/bmqelect/bmqelect/cluster/findings"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/testkit"
	"github.com/bmqelect/bmqelect/lsn"
)

func TestStatusNamesWhatDiffersBetweenMembers(t *testing.T) {
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		time.Sleep(time.Second)
		found := c.Node("a").Status().Findings
		require.Len(t, found, 2, "%v", found)
		require.Equal(t, findings.VotersDiffer, found[0].Kind)
		require.Equal(t, cluster.NodeID("b"), found[0].Peer)
		require.Contains(t, found[0].Detail, "d")
		require.Equal(t, findings.SettingsDiffer, found[1].Kind)
		require.Contains(t, found[1].Detail, "1.2s")
		require.NotEmpty(t, c.Node("b").Status().Findings)
		require.NotEmpty(t, c.Node("c").Status().Findings)
	}, clustertest.Configure(func(cfg *cluster.Config) {
		switch cfg.Node {
		case "b":
			cfg.Voters = []cluster.NodeID{"a", "b", "d"}
		case "c":
			cfg.Election.Timing = article
			cfg.Election.Timing.Lease = 1200 * time.Millisecond
		}
	}))
}

// While c is taken out of the voters, c itself goes on as one and acknowledges every heartbeat.
// That is normal: there is no warning, and one line for each link.
// Once a record names the voters, lists that differ for a while are part of every change of them.
func TestListsOfVotersMayDifferWhereARecordNamesThem(t *testing.T) {
	longer := false
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		c.AwaitLeader()
		_, err := c.Node("a").Default().Publish(t.Context(), []byte("x"), cluster.PublishOptions{})
		require.NoError(t, err)
		longer = true
		c.Restart("c")
		time.Sleep(time.Minute)
		for _, n := range c.nodes() {
			require.Empty(t, n.Status().Findings)
			require.Empty(t, n.Stats().Findings)
		}
		require.Len(t, c.Node("c").Status().Groups[0].Record.Configured, 4)

		e, err := c.Node("a").Election("without-a-record", cluster.ElectionConfig{})
		require.NoError(t, err)
		require.True(t, found(c.Node("a"), findings.VotersDiffer, "c"), "there they count")
		_, err = e.Publish(within(t, time.Second), nil, cluster.PublishOptions{})
		require.Error(t, err)
	}, clustertest.Configure(func(cfg *cluster.Config) {
		if cfg.Node == "c" && longer {
			cfg.Voters = append(slices.Clone(cfg.Voters), "d")
		}
	}))
}

func TestAVoterThatIsOneNoMoreIsToldOfOnceALink(t *testing.T) {
	var log testkit.Buffer
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		c.AwaitLeader()
		time.Sleep(10 * time.Minute)
		require.Positive(t, c.Node("a").Status().Anomalies["not-entitled"], "it is counted")
		for restarts := range 2 {
			require.Equal(t, restarts+1,
				log.Count("[INFO]  a node that is no voter here acts as one: node=a peer=c"))
			c.Restart("c")
			time.Sleep(time.Minute)
		}
		require.Zero(t, log.Count("not-entitled"))
		require.Positive(t, log.Count("docs/operations.md#changing-the-voters"))
	}, clustertest.Configure(func(cfg *cluster.Config) {
		cfg.Election.NotCandidate = cfg.Node != "a"
		if cfg.Node != "c" {
			cfg.Voters = three[:2]
		}
		if cfg.Node == "a" {
			cfg.Logger = hclog.New(&hclog.LoggerOptions{Output: &log})
		}
	}))
}

// claims lets a voter say to another that it leads, in a term so far ahead of the leader's.
func (c *testCluster) claims(liar, to *cluster.Node, ahead lsn.Term) {
	term := to.Status().Groups[0].Term + ahead
	liar.Do(func() {
		liar.Mesh().Send(to.ID(), cluster.DefaultGroup,
			elector.Message{Kind: elector.LeaderHeartbeat, Term: term, SentAt: 1})
	})
	synctest.Wait()
}

// A voter that claims to lead in the term of the leader or above is named by the leader.
func TestAVoterThatClaimsAgainstALeaderIsNamed(t *testing.T) {
	for name, ahead := range map[string]lsn.Term{"in its term": 0, "above it": 1} {
		t.Run(name, func(t *testing.T) {
			withCluster(t, three, func(t *testing.T, c *testCluster) {
				time.Sleep(election)
				leader := c.leader()
				others := c.others(leader)
				require.False(t, found(leader, findings.FalseClaim, others[0]))
				c.claims(c.Node(others[0]), leader, ahead)
				require.True(t, found(leader, findings.FalseClaim, others[0]))
				require.False(t, found(leader, findings.FalseClaim, others[1]))
			})
		})
	}
}

// A voter that claims and is silent is named by a follower that it draws from its leader again
// and again. Once or twice may happen to a correct voter.
func TestAVoterThatClaimsAndIsSilentIsNamed(t *testing.T) {
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		time.Sleep(election)
		others := c.others(c.leader())
		liar, follower := c.Node(others[0]), c.Node(others[1])
		// It takes no part in elections: each needs the follower.
		c.Cut(liar.ID(), c.leader().ID())
		require.NoError(t, liar.Default().SetFit(errors.New("it lies")))
		for claims := range 3 {
			require.False(t, found(follower, findings.FalseClaim, liar.ID()), claims)
			leader := c.AwaitLeader()
			if leader == follower.ID() {
				require.NoError(t, follower.Default().Transfer(t.Context(), ""))
			}
			c.claims(liar, follower, 1)
			time.Sleep(election)
		}
		require.True(t, found(follower, findings.FalseClaim, liar.ID()))
	})
}
