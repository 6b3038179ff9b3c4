package cluster

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/memnet"
)

// The death of a process on a copy of the leader's directory proves nothing about the
// leader, which a firewall keeps from the others while its lease lasts.
func TestTheDeathOfACopyIsNoProofOfTheLeaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		w.edit = func(c *Config) {
			c.Election.Timing = elector.Article()
			c.Election.Timing.MaxRandomWait = 10 * time.Millisecond
			c.Election.Timing.InitialWait = 1500 * time.Millisecond
		}
		w.start("a", "b", "c")
		time.Sleep(election)
		leader := w.leader()
		id := leader.cfg.Node
		dir := w.copyDir(id)
		for _, other := range w.others(leader) {
			w.net.Filter(string(id), string(other), memnet.Reject)
			w.net.Filter(string(other), string(id), memnet.Reject)
			w.net.Reset(string(id), string(other))
		}
		clone := w.startOn("clone", id, dir)
		time.Sleep(50 * time.Millisecond)
		require.True(t, clone.linked(), "the others have no reason to refuse it")
		w.crash("clone")
		for leader.IsLeader() {
			for _, other := range w.others(leader) {
				require.False(t, w.nodes[other].IsLeader(), "beside the leader, %s before its lease ends",
					time.Duration(leader.Status().Groups[0].LeaseLeft*1e9))
			}
			time.Sleep(time.Millisecond)
		}
		w.closeAll()
	})
}
