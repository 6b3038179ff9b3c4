package deploy

import (
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/base/clock"
	"github.com/bmqelect/bmqelect/internal/daemon/admin"
	"github.com/bmqelect/bmqelect/internal/daemon/procs"
	"github.com/bmqelect/bmqelect/internal/testkit/nodes"
	"github.com/bmqelect/bmqelect/netmesh"
)

// ward is a mesh that a real Prometheus watches.
type ward struct {
	*nodes.Scene
	*watchman
}

// job is the name under which the mesh is scraped.
const job = "mesh"

// TestEachFaultRaisesItsAlert does to a real mesh what alerts are for.
func TestEachFaultRaisesItsAlert(t *testing.T) {
	t.Parallel()
	// A vote of the node with the slow disk takes 400 ms, and longer on a busy machine:
	// it must be able to win the elections of the handovers to it.
	options := nodes.Quick()
	options["election-result"] = "2s"
	s, lone, alone := nodes.Play(t, 3, options), nodes.Play(t, 1, nil), nodes.Play(t, 1, nil)
	w := ward{s, watch(t, map[string]string{
		job: s.Admins(), "lonely": lone.Admins() + "," + alone.Admins(),
	})}
	w.Agree(w.Nodes(), nil)
	w.calmsDown()

	nodes.Intrude(t, w.Nodes()[0], netmesh.Config{Cluster: "another"}, nodes.Silent{})
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
	text, err := os.ReadFile(recipes + "grafana/bmqelect.json")
	require.NoError(w.T, err)
	var board struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}
	require.NoError(w.T, json.Unmarshal(text, &board))
	variables := strings.NewReplacer("$__rate_interval", "10s", "$cluster", cluster.DefaultCluster,
		"$group", cluster.DefaultGroup)
	for _, p := range board.Panels {
		for _, target := range p.Targets {
			w.query(variables.Replace(target.Expr), "")
		}
	}
}

// calmsDown waits until nothing grave fires; a slow machine may keep up the rest.
func (w ward) calmsDown() {
	grave := []string{"NoLeader", "TwoLeaders", "QuorumAtRisk", "NodeDown", "VotersDiffer",
		"VotersLost", "Misconfigured", "ClockAnomaly", "Flapping"}
	w.Eventually("all nodes are scraped, and nothing grave fires", func() bool {
		seen := w.query(`bmqelect_has_leader{job="`+job+`"} == 1`, "instance")
		return len(seen) == len(w.Nodes()) && !slices.ContainsFunc(w.firing(job), func(a string) bool {
			return slices.Contains(grave, strings.TrimPrefix(a, "Bmqelect"))
		})
	})
}

// cutsOneAndSlowsTheOther leaves a leader only a follower whose acks are so late
// that the lease is nearly over.
func (w ward) cutsOneAndSlowsTheOther() {
	leader := w.Agree(w.Nodes(), nil).Leader
	followers := w.Others(leader)
	w.Isolate(cluster.NodeID(followers[0].Name))
	w.Fault(followers[1], admin.FaultRequest{Links: []admin.LinkFault{{To: leader, Delay: 1.05}}})
	w.alarms(job, "NodeWithoutLeader", "QuorumAtRisk", "LeaseNearEnd")
	w.Heal()
}

// changesTheLeaderAgainAndAgain hands over more often than anybody would, while
// one of the nodes has a slow disk.
func (w ward) changesTheLeaderAgainAndAgain() {
	leader := w.Agree(w.Nodes(), nil).Leader
	follower := w.Others(leader)[0]
	slow := w.slowsDisk(follower)
	for range 6 {
		_, err := w.Named(leader).Client().Tell(w.T.Context(), admin.TransferRequest{})
		next := w.Agree(w.Nodes(), nil).Leader
		// That a third node was quicker than the target is a change as well; that the
		// old leader leads on is none.
		require.NotEqual(w.T, leader, next, "the transfer: %v", err)
		leader = next
	}
	w.alarms(job, "Flapping")
	if slow {
		nodes.Does(w.T, "pause", "--for", "1s", "--admin", follower.AdminAddr) // a vote needs no write
		nodes.Does(w.T, "resume", "--admin", follower.AdminAddr)
		w.alarms(job, "StoreSlow")
	}
}

// slowsDisk delays every write of a node to its disk, if strace can be had.
func (w ward) slowsDisk(n *procs.Node) bool {
	program, err := exec.LookPath("strace")
	if err != nil {
		w.T.Log("no slow disk: strace is not installed (Debian: apt-get install strace)")
		return false
	}
	const sync = "fsync,fdatasync"
	tracer := nodes.Launch(w.T, exec.Command(program, "-qq", "-e", "trace="+sync, "-p",
		strconv.Itoa(n.Pid()), "-f", "-o", "/dev/null",
		"-e", "inject="+sync+":delay_enter=200ms"))
	return w.traced(n, tracer.Gone)
}

// traced waits until a process is traced, or its tracer is gone: tracing may be forbidden.
func (w ward) traced(n *procs.Node, gone <-chan struct{}) (yes bool) {
	w.Eventually("strace has begun, or ended", func() bool {
		select {
		case <-gone:
			w.T.Log("no slow disk: strace cannot trace here")
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
	odd := w.Others(w.Agree(w.Nodes(), nil).Leader)[1]
	rewrite := func(from, to string) {
		w.Halt(odd)
		nodes.Edit(w.T, odd, func(text string) string {
			require.Contains(w.T, text, from)
			return strings.Replace(text, from, to, 1)
		})
		require.NoError(w.T, odd.Start())
	}
	const right, wrong = "voters:\n- n1\n", "voters:\n- n9\n- n1\n"
	rewrite(right, wrong)
	w.alarms(job, "VotersDiffer")
	rewrite(wrong, right)
	w.Agree(w.Nodes(), nil)
}

// pausesTheLeader until the others have replaced it.
func (w ward) pausesTheLeader() {
	first := w.Agree(w.Nodes(), nil)
	old := w.Named(first.Leader)
	require.NoError(w.T, old.Signal(syscall.SIGSTOP))
	w.Agree(w.Others(first.Leader), nodes.Above(first.Term))
	w.alarms(job, "NodeDown")
	require.NoError(w.T, old.Signal(syscall.SIGCONT))
	w.alarms(job, "HeldUp")
	w.Agree(w.Nodes(), nil)
}

// losesTheQuorumForGood and goes on with the one that is left.
func (w ward) losesTheQuorumForGood() {
	last := w.Others(w.Agree(w.Nodes(), nil).Leader)[0]
	var lost []string
	for _, n := range w.Others(cluster.NodeID(last.Name)) {
		lost = append(lost, n.Name)
		require.NoError(w.T, n.Kill())
	}
	w.Eventually("nobody leads",
		func() bool { return slices.Contains(w.firing(job), "BmqelectNoLeader") })
	w.Halt(last)
	nodes.Does(w.T, "emergency", "--config", last.ConfigFile, "--lost", strings.Join(lost, ","),
		"--confirm", cluster.DefaultCluster)
	require.NoError(w.T, last.Start())
	w.alarms(job, "VotersLost")
	const said = "voters were declared lost: the others elect without them"
	require.Equal(w.T, 1, w.Said(last.Name, said), "the node says so at its start")
}

// fast is a clock that gains a twentieth.
type fast struct{ clock.Clock }

func (f fast) Now() time.Duration { return f.Clock.Now() / 20 * 21 }

// TestAFastClockRaisesItsAlert takes the pings of half a minute.
func TestAFastClockRaisesItsAlert(t *testing.T) {
	if os.Getenv("ALERTS_LONG") == "" {
		t.Skip("takes half a minute; set ALERTS_LONG=1")
	}
	t.Parallel()
	s := nodes.Play(t, 1, nil)
	w := watch(t, map[string]string{"clocks": s.Admins()})
	as := netmesh.Config{Cluster: cluster.DefaultCluster, Clock: fast{clock.System()}}
	nodes.Intrude(t, s.Nodes()[0], as, nodes.Silent{})
	require.Eventually(t, func() bool {
		return len(w.query(`bmqelect_link_up{peer="stranger"} == 1`, "peer")) == 1
	}, nodes.Patience, 100*time.Millisecond)
	require.NotContains(t, w.firing("clocks"), "BmqelectClockAnomaly", "it takes a while to be sure")
	w.alarms("clocks", "ClockAnomaly")
}
