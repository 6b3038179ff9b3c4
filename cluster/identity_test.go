package cluster_test

import (
	"context"
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/clustertest"
	"github.com/bmqelect/bmqelect/cluster/findings"
	"github.com/bmqelect/bmqelect/cluster/internal/testhook"
	"github.com/bmqelect/bmqelect/cluster/internal/testprocess"
	"github.com/bmqelect/bmqelect/internal/memnet"
	"github.com/bmqelect/bmqelect/netmesh"
	"github.com/bmqelect/bmqelect/netmesh/fault"
	"github.com/stretchr/testify/require"
)

// copyDir copies the data directory of a node, which may run, and returns the copy's path.
func (c *testCluster) copyDir(id cluster.NodeID) string {
	synctest.Wait()
	dir := c.t.TempDir()
	require.NoError(c.t, os.CopyFS(dir, os.DirFS(c.DataDir(id))))
	return dir
}

// twin is a second process with a node's name, beside that of the cluster or instead of it.
type twin struct {
	*cluster.Node
	process *testprocess.Process
}

// startOn starts a process of a node's name on a host and a data directory of its own.
func (c *testCluster) startOn(
	host string, id cluster.NodeID, dir string, edits ...func(*cluster.Config),
) twin {
	cfg := c.config(id)
	cfg.DataDir, cfg.MeshAddr = dir, host+":7401"
	for _, edit := range edits {
		edit(&cfg)
	}
	process := testprocess.New(c.net, host)
	n, err := cluster.Start(process.Context(testhook.Hooks{Peers: c.peers()}), cfg)
	require.NoError(c.t, err)
	c.t.Cleanup(func() { _ = n.Close(context.Background()) })
	return twin{n, process}
}

func (w twin) crash() {
	w.process.Kill()
	_ = w.Close(context.Background())
}

// found reports whether a node's status has a finding of that kind about a peer.
func found(n *cluster.Node, kind findings.Kind, peer cluster.NodeID) bool {
	return slices.ContainsFunc(n.Status().Findings, func(f findings.Finding) bool {
		return f.Kind == kind && f.Peer == peer
	})
}

// linked reports whether a node has a link to any other.
func linked(n *cluster.Node) bool {
	return slices.ContainsFunc(n.Mesh().Links(), func(l netmesh.LinkStatus) bool { return l.Up })
}

// A copy of the leader's data directory, started beside it, never leads and never
// unseats the leader, also when one of the leader's links breaks.
func TestACopyOfTheLeadersDirectoryDoesNotUnseatIt(t *testing.T) {
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		leader := c.elect()
		id, term := leader.ID(), leader.Status().Groups[0].Term
		clone := c.startOn("clone", id, c.copyDir(id))
		for i := range 3000 {
			time.Sleep(10 * time.Millisecond)
			require.True(t, leader.IsLeader())
			require.False(t, clone.IsLeader())
			for _, other := range c.others(leader) {
				require.False(t, c.Node(other).IsLeader())
			}
			if i == 1500 {
				c.breakLink(c.others(leader)[0], id)
			}
		}
		require.Equal(t, term, leader.Status().Groups[0].Term)
		require.Equal(t, c.ids, leader.Machine().Supporters)
		require.False(t, linked(clone.Node))
		for _, other := range c.others(leader) {
			require.True(t, found(c.Node(other), findings.DirectoryCopied, id), other)
			require.True(t, found(clone.Node, findings.DirectoryCopied, other), other)
		}
	})
}

// breakLink resets the link between two nodes, as a firewall may.
func (c *testCluster) breakLink(a, b cluster.NodeID) { c.Faults(a).Reset(b) }

// A node that comes back on a copy of its data directory does not know its votes since the copy was
// made. It takes no part until its directory is empty.
func TestARestoredCopyTakesNoPart(t *testing.T) {
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		leader := c.elect()
		id := c.others(leader)[0]
		c.Stop(id)
		dir := c.copyDir(id)
		c.Start(id) // at boot 2
		time.Sleep(election)
		c.Stop(id)

		restored := c.startOn(string(id), id, dir) // at boot 2, too
		time.Sleep(election)
		require.False(t, linked(restored.Node))
		require.True(t, found(leader, findings.DirectoryCopied, id))
		require.True(t, found(restored.Node, findings.DirectoryCopied, leader.ID()))
		require.NoError(t, restored.Close(context.Background()))

		c.Replace(id)
		c.Start(id)
		emptied := c.Node(id)
		time.Sleep(election)
		require.True(t, linked(emptied))
		require.Equal(t, leader.ID(), emptied.Status().Groups[0].Leader)
		require.False(t, found(leader, findings.DirectoryCopied, id))
	})
}

// A machine was lost with its disk, and nobody has proof of its end. It is replaced without a
// restart of the other nodes.
func TestALostMachineIsForgottenAndReplaced(t *testing.T) {
	withCluster(t, three, func(t *testing.T, c *testCluster) {
		leader := c.elect()
		id := c.others(leader)[0]
		healthy := c.others(c.Node(id))
		for _, n := range healthy {
			require.ErrorContains(t, c.Node(n).Forget(t.Context(), id), "there is a link to it")
			require.Equal(t, c.Node(id).Status().Identity, member(c.Node(n), id).Identity)
		}
		for _, n := range healthy {
			c.Faults(n).Cut(id, fault.Both) // as a cable that is pulled
		}
		for waiting := slices.Clone(healthy); len(waiting) > 0; time.Sleep(100 * time.Millisecond) {
			waiting = slices.DeleteFunc(waiting, func(n cluster.NodeID) bool {
				if member(c.Node(n), id).Link == "up" {
					return false
				}
				require.ErrorContains(t, c.Node(n).Forget(t.Context(), id),
					"after 1.428s nothing that was promised")
				return true
			})
		}
		c.Crash(id)
		time.Sleep(election)

		c.Replace(id)
		c.Start(id)
		successor := c.Node(id)
		c.Heal()
		time.Sleep(election)
		require.False(t, linked(successor))
		for _, n := range healthy {
			require.True(t, found(c.Node(n), findings.NameTwice, id))
			require.NoError(t, c.Node(n).Forget(t.Context(), id))
			require.True(t, member(c.Node(n), id).Forgotten)
			require.Empty(t, member(c.Node(n), id).Identity)
		}
		time.Sleep(election)
		require.Same(t, leader, c.leader(), "and nobody was disturbed")
		for _, n := range healthy {
			require.Equal(t, successor.Status().Identity, member(c.Node(n), id).Identity)
			require.False(t, member(c.Node(n), id).Forgotten)
		}
	})
}

// member is another member as this node's status has it.
func member(n *cluster.Node, id cluster.NodeID) (found cluster.MemberStatus) {
	for _, m := range n.Status().Members {
		if m.Node == id {
			found = m
		}
	}
	return found
}

func TestForgetNamesWhatItCannotDo(t *testing.T) {
	withCluster(t, []cluster.NodeID{"a", "b"}, func(t *testing.T, c *testCluster) {
		time.Sleep(election)
		a := c.Node("a")
		require.EqualError(t, a.Forget(t.Context(), "a"), "node a forgets node a: that is this node")
		require.EqualError(t, a.Forget(t.Context(), "x"),
			"node a forgets node x: no member has that name")
		require.NoError(t, a.Forget(t.Context(), "b"), "nothing is known of it")
		require.ErrorIs(t, a.Forget(cluster.Canceled, "b"), cluster.Canceled.Err())
		c.stopAll()
		require.ErrorIs(t, a.Forget(t.Context(), "b"), cluster.ErrClosed)
	}, clustertest.Down("b"))
}

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
