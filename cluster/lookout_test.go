package cluster_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/clustertest"
	"github.com/bmqelect/bmqelect/cluster/findings"
	"github.com/bmqelect/bmqelect/internal/testkit"
)

func TestANodeThatFindsNobodySaysSo(t *testing.T) {
	var log bytes.Buffer
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		c.stopAll()
		c.Start("a")
		time.Sleep(29 * time.Second)
		require.Empty(t, c.Node("a").Status().Findings)
		time.Sleep(time.Minute)
		found := c.Node("a").Status().Findings
		require.Len(t, found, 1)
		require.Equal(t, findings.Alone, found[0].Kind)
		require.Equal(t, `node "a" has found no other member: it has no address to join`, found[0].Detail)
		require.NotEmpty(t, found[0].Advice)
		synctest.Wait() // for what writes the log
		require.Equal(t, 1, strings.Count(log.String(), "reason=alone"), "%s", &log)

		c.Start("b")
		time.Sleep(2 * time.Second)
		require.Empty(t, c.Node("a").Status().Findings)
		c.Stop("b")
		time.Sleep(time.Minute)
		require.Empty(t, c.Node("a").Status().Findings, "b was found, and its link says the rest")
	}, clustertest.Configure(func(cfg *cluster.Config) {
		if cfg.Node == "a" {
			cfg.Logger = hclog.New(&hclog.LoggerOptions{Output: &log})
		}
	}))
}

// The look for other members does not wait for the driver.
func TestANodeWhoseDriverHangsFindsThatItIsAlone(t *testing.T) {
	var log testkit.Buffer
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		c.stopAll()
		c.Start("a")
		goOn := hang(t, c.Node("a"), false)
		time.Sleep(time.Minute)
		require.Equal(t, 1, log.Count("reason=alone"))
		goOn()
	}, clustertest.Configure(func(cfg *cluster.Config) {
		if cfg.Node == "a" {
			cfg.Logger = hclog.New(&hclog.LoggerOptions{Output: &log})
		}
	}))
}

func TestTheOnlyVoterMayBeAlone(t *testing.T) {
	withCluster(t, one, func(t *testing.T, c *testCluster) {
		time.Sleep(time.Minute)
		require.Empty(t, c.Node("a").Status().Findings)
	})
}

func TestTheStartIsOneLine(t *testing.T) {
	var log bytes.Buffer
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		synctest.Wait() // for what writes the log
		_, line, _ := strings.Cut(log.String(), "node started: ")
		line, _, _ = strings.Cut(line, "\n")
		for _, part := range []string{"version=v9", "mesh=c:7401",
			"admin=c:7402", "data-dir=" + c.DataDir("c"), `voters=["a", "b"]`,
			`role="observer: c is not among the voters a, b"`} {
			require.Contains(t, line, part)
		}
		require.Equal(t, 1, strings.Count(log.String(), "node started"))
	}, clustertest.Configure(func(cfg *cluster.Config) {
		cfg.Voters = three[:2]
		if cfg.Node == "c" {
			cfg.Version, cfg.AdminAddr = "v9", "c:7402"
			cfg.Logger = hclog.New(&hclog.LoggerOptions{Output: &log})
		}
	}))
	require.Equal(t, "voter and candidate", cluster.Config{Node: "a", Voters: three}.Role())
	require.Equal(t, "voter, not a candidate", cluster.Config{Node: "a", Voters: three,
		Election: cluster.ElectionConfig{NotCandidate: true}}.Role())
}

func TestEveryNodeKnowsThatNobodyStands(t *testing.T) {
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		require.NoError(t, c.Node("c").Default().SetFit(errors.New("the disk is full")))
		time.Sleep(time.Minute)
		for id, n := range c.nodes() {
			require.Equal(t, "no leader: no eligible candidate is up (a: it is not a candidate; "+
				"b: nobody campaigns on it; c: it is not fit (the disk is full))",
				n.Status().Groups[0].Explanation, id)
		}
		require.Equal(t, "nobody campaigns on it", c.Node("a").Status().Members[0].NotStanding)
		require.Empty(t, c.Node("a").Status().Findings)

		c.Stop("c")
		time.Sleep(2 * time.Second)
		require.Equal(t, "no leader: no eligible candidate is up (a: it is not a candidate; "+
			"b: nobody campaigns on it; not connected: c)", c.Node("b").Status().Groups[0].Explanation)
		c.campaign("b")
		time.Sleep(election)
		require.Equal(t, c.Node("b"), c.leader())
		require.Empty(t, c.Node("a").Status().Members[0].NotStanding)
	}, clustertest.Configure(func(cfg *cluster.Config) {
		cfg.Election.NotCandidate = cfg.Node == "a"
		cfg.Election.AwaitCampaign = cfg.Node == "b"
	}))
}

func TestWhoMightStandIsWaitedFor(t *testing.T) {
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		c.Restart("a")
		time.Sleep(100 * time.Millisecond)
		require.NotContains(t, c.Node("a").Status().Groups[0].Explanation, "no eligible candidate")
	}, clustertest.Configure(func(cfg *cluster.Config) {
		cfg.Election.NotCandidate = cfg.Node == "a"
	}))
}
