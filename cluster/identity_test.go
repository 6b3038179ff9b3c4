package cluster

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster/findings"
	"github.com/bmqelect/bmqelect/netmesh/fault"
)

// copyDir copies the data directory of a node, which may run, and returns the copy's path.
func (w *world) copyDir(id NodeID) string {
	synctest.Wait()
	dir := w.t.TempDir()
	require.NoError(w.t, os.CopyFS(dir, os.DirFS(filepath.Join(w.dir, string(id)))))
	return dir
}

// startOn starts a process of a node's name on a host and a data directory of its own.
func (w *world) startOn(host string, id NodeID, dir string) *Node {
	cfg := Config{Node: id, Voters: w.voters, DataDir: dir, MeshAddr: host + ":7401"}
	w.edit(&cfg)
	n, err := Start(w.context(NodeID(host)), cfg)
	require.NoError(w.t, err)
	w.nodes[NodeID(host)] = n
	return n
}

// found reports whether a node's status has a finding of that kind about a peer.
func (n *Node) found(kind findings.Kind, peer NodeID) bool {
	for _, f := range n.diagnosis.Findings() {
		if f.Kind == kind && f.Peer == peer {
			return true
		}
	}
	return false
}

// linked reports whether a node has a link to any other.
func (n *Node) linked() bool {
	for _, l := range n.mesh.Links() {
		if l.Up {
			return true
		}
	}
	return false
}

// A copy of the leader's data directory, started beside it, never leads and never
// unseats the leader, also when one of the leader's links breaks.
func TestACopyOfTheLeadersDirectoryDoesNotUnseatIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		w.start("a", "b", "c")
		time.Sleep(election)
		leader := w.leader()
		id, term := leader.cfg.Node, leader.Status().Groups[0].Term
		clone := w.startOn("clone", id, w.copyDir(id))
		for i := range 3000 {
			time.Sleep(10 * time.Millisecond)
			require.True(t, leader.IsLeader())
			require.False(t, clone.IsLeader())
			for _, other := range w.others(leader) {
				require.False(t, w.nodes[other].IsLeader())
			}
			if i == 1500 {
				w.breakLink(w.others(leader)[0], id)
			}
		}
		require.Equal(t, term, leader.Status().Groups[0].Term)
		require.Equal(t, w.voters, leader.machine().Supporters)
		require.False(t, clone.linked())
		for _, other := range w.others(leader) {
			require.True(t, w.nodes[other].found(findings.DirectoryCopied, id), other)
			require.True(t, clone.found(findings.DirectoryCopied, other), other)
		}
		w.closeAll()
	})
}

// breakLink resets the link between two nodes, as a firewall may.
func (w *world) breakLink(a, b NodeID) { w.faults[a].Reset(b) }

// A copy of a follower's data directory, made while it was down, comes with the
// boot counter of the process on the original.
func TestACopyOfAFollowersDirectoryTakesNoPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		w.start("a", "b", "c")
		time.Sleep(election)
		leader := w.leader()
		id := w.others(leader)[0]
		w.close(id)
		dir := w.copyDir(id)
		w.start(id)
		time.Sleep(election)
		clone := w.startOn("clone", id, dir)
		for range 1000 {
			time.Sleep(10 * time.Millisecond)
			require.True(t, leader.IsLeader())
			require.Equal(t, w.voters, leader.machine().Supporters)
		}
		require.False(t, clone.linked())
		require.True(t, leader.found(findings.DirectoryCopied, id))
		require.True(t, clone.found(findings.DirectoryCopied, leader.cfg.Node))
		w.closeAll()
	})
}

// A node that comes back on a copy of its data directory does not know what it voted
// since. It takes no part until its directory is empty.
func TestARestoredCopyTakesNoPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		w.start("a", "b", "c")
		time.Sleep(election)
		leader := w.leader()
		id := w.others(leader)[0]
		w.close(id)
		dir := w.copyDir(id)
		w.start(id) // at boot 2
		time.Sleep(election)
		w.close(id)

		restored := w.startOn(string(id), id, dir) // at boot 2, too
		time.Sleep(election)
		require.False(t, restored.linked())
		require.True(t, leader.found(findings.DirectoryCopied, id))
		require.True(t, restored.found(findings.DirectoryCopied, leader.cfg.Node))
		w.close(id)

		emptied := w.startOn(string(id), id, t.TempDir())
		time.Sleep(election)
		require.True(t, emptied.linked())
		require.Equal(t, leader.cfg.Node, emptied.Status().Groups[0].Leader)
		require.False(t, leader.found(findings.DirectoryCopied, id))
		w.closeAll()
	})
}

// A machine that was lost with its disk, and of whose end nobody has proof, is
// replaced without a restart of those that are well.
func TestALostMachineIsForgottenAndReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		w.start("a", "b", "c")
		time.Sleep(election)
		leader := w.leader()
		id := w.others(leader)[0]
		healthy := w.others(w.nodes[id])
		for _, n := range healthy {
			require.ErrorContains(t, w.nodes[n].Forget(t.Context(), id), "there is a link to it")
			require.Equal(t, w.nodes[id].Status().Identity, w.nodes[n].member(id).Identity)
		}
		for _, n := range healthy {
			w.faults[n].Cut(id, fault.Both) // as a cable that is pulled
		}
		for _, n := range healthy {
			for w.nodes[n].member(id).Link == "up" {
				time.Sleep(100 * time.Millisecond)
			}
			require.ErrorContains(t, w.nodes[n].Forget(t.Context(), id), "after 1.02s nothing that was promised")
		}
		w.crash(id)
		time.Sleep(election)

		successor := w.startOn(string(id), id, t.TempDir())
		for _, n := range healthy {
			w.faults[n].HealAll()
		}
		time.Sleep(election)
		require.False(t, successor.linked())
		for _, n := range healthy {
			require.True(t, w.nodes[n].found(findings.NameTwice, id))
			require.NoError(t, w.nodes[n].Forget(t.Context(), id))
			require.True(t, w.nodes[n].member(id).Forgotten)
			require.Empty(t, w.nodes[n].member(id).Identity)
		}
		time.Sleep(election)
		require.Same(t, leader, w.leader(), "and nobody was disturbed")
		for _, n := range healthy {
			require.Equal(t, successor.Status().Identity, w.nodes[n].member(id).Identity)
			require.False(t, w.nodes[n].member(id).Forgotten)
		}
		w.closeAll()
	})
}

// member is another member as this node's status has it.
func (n *Node) member(id NodeID) (found MemberStatus) {
	for _, m := range n.Status().Members {
		if m.Node == id {
			found = m
		}
	}
	return found
}

func TestForgetNamesWhatItCannotDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b")
		w.start("a")
		time.Sleep(election)
		a := w.nodes["a"]
		require.EqualError(t, a.Forget(t.Context(), "a"), "node a forgets node a: that is this node")
		require.EqualError(t, a.Forget(t.Context(), "x"), "node a forgets node x: no member has that name")
		require.NoError(t, a.Forget(t.Context(), "b"), "nothing is known of it")
		require.ErrorIs(t, a.Forget(canceled, "b"), canceled.Err())
		w.closeAll()
		require.ErrorIs(t, a.Forget(t.Context(), "b"), ErrClosed)
	})
}
