package main_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/daemon/admin"
	"github.com/bmqelect/bmqelect/internal/daemon/procs"
	"github.com/bmqelect/bmqelect/netmesh"
)

// ward is a mesh that a real Prometheus watches.
type ward struct {
	*scene
	*watchman
}

// job is the name under which the mesh is scraped.
const job = "mesh"

// TestEachFaultRaisesItsAlert does to a real mesh what alerts are for.
func TestEachFaultRaisesItsAlert(t *testing.T) {
	t.Parallel()
	// A vote of the node with the slow disk takes 400 ms, and longer on a busy machine:
	// it must be able to win the elections of the handovers to it.
	options := quick()
	options["election-result"] = "2s"
	s, lone, alone := play(t, 3, options), play(t, 1, nil), play(t, 1, nil)
	w := ward{s, watch(t, map[string][]string{
		job: addresses(s.Nodes()), "lonely": addresses(append(lone.Nodes(), alone.Nodes()...)),
	})}
	w.agree(w.Nodes(), nil)
	w.calmsDown()

	intrude(t, w.Nodes()[0], netmesh.Config{Cluster: "another"})
	w.cutsOneAndSlowsTheOther()
	w.alarms(job, "Misconfigured")
	w.changesTheLeaderAgainAndAgain()
	w.pausesTheLeader()
	w.changesTheVotersOfOne()
	w.losesTheQuorumForGood()
	// Two nodes of one name for the cluster that know nothing of each other lead
	// both in the first term, as if a disk had been put back.
	w.alarms("lonely", "TwoLeaders")
	w.showsTheDashboard()
}

// showsTheDashboard asks what the dashboard asks: a query that joins wrongly fails
// only once there is something to join.
func (w ward) showsTheDashboard() {
	text, err := os.ReadFile("../../deploy/grafana/bmqelect.json")
	require.NoError(w.scene.t, err)
	var board struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}
	require.NoError(w.scene.t, json.Unmarshal(text, &board))
	variables := strings.NewReplacer("$__rate_interval", "10s", "$cluster", cluster.DefaultCluster,
		"$group", cluster.DefaultGroup)
	for _, p := range board.Panels {
		for _, target := range p.Targets {
			w.query(variables.Replace(target.Expr), "")
		}
	}
}

func addresses(nodes []*procs.Node) (addrs []string) {
	for _, n := range nodes {
		addrs = append(addrs, n.AdminAddr)
	}
	return addrs
}

// calmsDown waits until nothing grave fires; a slow machine may keep up the rest.
func (w ward) calmsDown() {
	grave := []string{"NoLeader", "TwoLeaders", "QuorumAtRisk", "NodeDown", "VotersDiffer",
		"VotersLost", "Misconfigured", "ClockAnomaly", "Flapping"}
	w.eventually("all nodes are scraped, and nothing grave fires", func() bool {
		seen := w.query(`bmqelect_has_leader{job="`+job+`"} == 1`, "instance")
		return len(seen) == len(w.Nodes()) && !slices.ContainsFunc(w.firing(job), func(a string) bool {
			return slices.Contains(grave, strings.TrimPrefix(a, "Bmqelect"))
		})
	})
}

// cutsOneAndSlowsTheOther leaves a leader only a follower whose acks are so late
// that the lease is nearly over.
func (w ward) cutsOneAndSlowsTheOther() {
	leader := w.agree(w.Nodes(), nil).Leader
	followers := w.others(leader)
	w.isolate(cluster.NodeID(followers[0].Name))
	w.fault(followers[1], admin.FaultRequest{Links: []admin.LinkFault{{To: leader, Delay: 1.05}}})
	w.alarms(job, "NodeWithoutLeader", "QuorumAtRisk", "LeaseNearEnd")
	w.heal()
}

// changesTheLeaderAgainAndAgain hands over more often than anybody would, while
// one of the nodes has a slow disk.
func (w ward) changesTheLeaderAgainAndAgain() {
	leader := w.agree(w.Nodes(), nil).Leader
	follower := w.others(leader)[0]
	slow := w.slowsDisk(follower)
	for range 6 {
		ctx, cancel := context.WithTimeout(w.scene.t.Context(), patience)
		_, err := w.node(leader).Client().Tell(ctx, admin.TransferRequest{})
		cancel()
		next := w.agree(w.Nodes(), nil).Leader
		// That a third node was quicker than the target is a change as well; that the
		// old leader leads on is none.
		require.NotEqual(w.scene.t, leader, next, "the transfer: %v", err)
		leader = next
	}
	w.alarms(job, "Flapping")
	if slow {
		pauseAndResume(w.scene.t, follower) // a vote needs no write
		w.alarms(job, "StoreSlow")
	}
}

// pauseAndResume lets a node write to its disk.
func pauseAndResume(t testing.TB, n *procs.Node) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err := n.Client().Tell(ctx, admin.PauseRequest{For: "1s"})
	require.NoError(t, err)
	_, err = n.Client().Tell(ctx, admin.ResumeRequest{})
	require.NoError(t, err)
}

// slowsDisk delays every write of a node to its disk, if strace can be had.
func (w ward) slowsDisk(n *procs.Node) bool {
	program, err := exec.LookPath("strace")
	if err != nil {
		w.scene.t.Log("no slow disk: strace is not installed (Debian: apt-get install strace)")
		return false
	}
	const sync = "fsync,fdatasync"
	gone := runBeside(w.watchman.t, exec.Command(program, "-qq", "-e", "trace="+sync, "-p",
		strconv.Itoa(n.Pid()), "-f", "-o", "/dev/null",
		"-e", "inject="+sync+":delay_enter=200ms"))
	return w.traced(n, gone)
}

// traced waits until a process is traced, or its tracer is gone: it may not be allowed.
func (w ward) traced(n *procs.Node, gone <-chan struct{}) (yes bool) {
	w.eventually("strace has begun, or ended", func() bool {
		select {
		case <-gone:
			w.scene.t.Log("no slow disk: strace cannot trace here")
			return true
		default:
		}
		status, err := os.ReadFile("/proc/" + strconv.Itoa(n.Pid()) + "/status")
		yes = err == nil && strings.Contains(string(status), "TracerPid:") &&
			!strings.Contains(string(status), "TracerPid:\t0\n")
		return yes
	})
	return yes
}

// changesTheVotersOfOne restarts a node with a voter too many.
func (w ward) changesTheVotersOfOne() {
	odd := w.others(w.agree(w.Nodes(), nil).Leader)[1]
	text, err := os.ReadFile(odd.ConfigFile)
	require.NoError(w.scene.t, err)
	require.Contains(w.scene.t, string(text), "voters:\n- n1\n")
	rewrite := func(text string) {
		w.stop(odd)
		require.NoError(w.scene.t, os.WriteFile(odd.ConfigFile, []byte(text), 0o600))
		require.NoError(w.scene.t, odd.Start())
	}
	rewrite(strings.Replace(string(text), "voters:\n- n1\n", "voters:\n- n9\n- n1\n", 1))
	w.alarms(job, "VotersDiffer")
	rewrite(string(text))
	w.agree(w.Nodes(), nil)
}

func (w ward) stop(n *procs.Node) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	require.NoError(w.scene.t, n.Stop(ctx))
}

// pausesTheLeader until the others have replaced it.
func (w ward) pausesTheLeader() {
	first := w.agree(w.Nodes(), nil)
	old := w.node(first.Leader)
	require.NoError(w.scene.t, old.Signal(syscall.SIGSTOP))
	w.agree(w.others(first.Leader), above(first.Term))
	w.alarms(job, "NodeDown")
	require.NoError(w.scene.t, old.Signal(syscall.SIGCONT))
	w.alarms(job, "HeldUp")
	w.agree(w.Nodes(), nil)
}

// losesTheQuorumForGood and goes on with the one that is left.
func (w ward) losesTheQuorumForGood() {
	last := w.others(w.agree(w.Nodes(), nil).Leader)[0]
	var lost []string
	for _, n := range w.others(cluster.NodeID(last.Name)) {
		lost = append(lost, n.Name)
		require.NoError(w.scene.t, n.Kill())
	}
	w.eventually("nobody leads",
		func() bool { return slices.Contains(w.firing(job), "BmqelectNoLeader") })
	w.stop(last)
	_, stderr, code := bmqnode(w.watchman.t, "emergency", "--config", last.ConfigFile, "--lost",
		strings.Join(lost, ","), "--confirm", cluster.DefaultCluster)
	require.Zero(w.scene.t, code, stderr)
	require.NoError(w.scene.t, last.Start())
	w.alarms(job, "VotersLost")
}
