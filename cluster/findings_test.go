package cluster_test

import (
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/clustertest"
	"github.com/bmqelect/bmqelect/cluster/findings"
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

// While c is taken out of the voters it goes on as one, with an acknowledgement for each
// heartbeat. That is usual: no warning, and a line for each time that it comes.
func TestAVoterThatIsOneNoMoreIsToldOfOnceALink(t *testing.T) {
	var log lockedBuffer
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		c.AwaitLeader()
		time.Sleep(10 * time.Minute)
		require.Positive(t, c.Node("a").Status().Anomalies["not-entitled"], "it is counted")
		for restarts := range 2 {
			require.Equal(t, restarts+1,
				log.count("[INFO]  a node that is no voter here acts as one: node=a peer=c"))
			c.Restart("c")
			time.Sleep(time.Minute)
		}
		require.Zero(t, log.count("not-entitled"))
		require.Positive(t, log.count("docs/operations.md#changing-the-voters"))
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
