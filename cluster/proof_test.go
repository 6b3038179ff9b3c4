package cluster_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/clustertest"
	"github.com/bmqelect/bmqelect/internal/memnet"
)

// The death of a process on a copy of the leader's directory proves nothing about the
// leader, which a firewall keeps from the others while its lease lasts.
func TestTheDeathOfACopyIsNoProofOfTheLeaders(t *testing.T) {
	hasty := func(cfg *cluster.Config) {
		cfg.Election.Timing = article
		cfg.Election.Timing.MaxRandomWait = 10 * time.Millisecond
		cfg.Election.Timing.InitialWait = 1500 * time.Millisecond
	}
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		leader := c.elect()
		id := leader.ID()
		dir := c.copyDir(id)
		for _, other := range c.others(leader) {
			c.net.Filter(string(id), string(other), memnet.Reject)
			c.net.Filter(string(other), string(id), memnet.Reject)
			c.net.Reset(string(id), string(other))
		}
		time.Sleep(10 * time.Millisecond) // until they know
		for _, host := range []string{"clone", "clone again"} {
			clone := c.startOn(host, id, dir, hasty)
			time.Sleep(50 * time.Millisecond)
			require.True(t, linked(clone.Node), "the others have no reason to refuse it")
			clone.crash()
		}
		for leader.IsLeader() {
			for _, other := range c.others(leader) {
				require.False(t, c.Node(other).IsLeader(), "beside the leader, %s before its lease ends",
					time.Duration(leader.Status().Groups[0].LeaseLeft*1e9))
			}
			time.Sleep(time.Millisecond)
		}
	}, clustertest.Configure(hasty))
}
