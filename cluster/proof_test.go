package cluster

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/base/memnet"
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
		for _, host := range []string{"clone", "clone again"} {
			clone := w.startOn(host, id, dir)
			time.Sleep(50 * time.Millisecond)
			require.True(t, clone.linked(), "the others have no reason to refuse it")
			w.crash(NodeID(host))
		}
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

// A process that was proven dead holds no promise any more: the death of the one after it
// counts at once.
func TestARestartAfterAProvenDeathCastsNoDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		w.start("a", "b", "c")
		time.Sleep(election)
		leader := w.leader()
		for _, id := range w.others(leader) {
			w.crash(id)
			time.Sleep(election)
			w.start(id)
			time.Sleep(election)
			leader.call(func() {
				require.Equal(t, uint64(2), leader.processes[id].boot)
				require.Zero(t, leader.processes[id].since)
			})
		}
		w.closeAll()
	})
}
