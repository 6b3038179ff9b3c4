package clustertest_test

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/clustertest"
)

// failing is an environment variable with the name of a test that must fail. Each such test runs
// in a process of its own.
const failing = "CLUSTERTEST_FAILING"

// failures are tests that must fail: by a mistake in the test, or because no leader comes.
var failures = []struct {
	name string
	test func(t *testing.T, c *clustertest.Cluster)
	want []string // in the output
}{
	{"no-leader", func(t *testing.T, c *clustertest.Cluster) {
		c.Crash("b")
		c.Cut("a", "c")
		c.AwaitLeader()
	}, []string{
		"waited 1m25.5s of virtual time for a leader that a quorum follows, which did not come",
		"failure_test.go:", // the line of the caller
		"at 1m25.5s:",
		"a  FOLLOWER in term 0: no leader: 2 of 3 voters needed, 1 reachable (b: down (",
		"b  crashed for 1m25.5s",
		"cut: a-c",
		"what happened, with BMQELECT_SEED=",
		"0s  b is crashed",
		"0s  a-c is cut",
	}},
	{"lost-leader", func(t *testing.T, c *clustertest.Cluster) {
		c.Pause(c.AwaitLeader())
		c.Pause(c.AwaitLeader())
		c.AwaitLeader()
	}, []string{
		"-> LEADER ELECTED term=1 leader=",
		" is paused\n",
		"LEADER_NO_HEARTBEAT term=1",
		"  paused for 1m",
		"FOLLOWER in term 2: no leader: 2 of 3 voters needed, 1 reachable",
	}},
	{"unknown", func(t *testing.T, c *clustertest.Cluster) { c.Crash("d") },
		[]string{`no node "d"; the cluster has [a b c]`}},
	{"down", func(t *testing.T, c *clustertest.Cluster) {
		c.Crash("a")
		time.Sleep(3 * time.Second)
		c.Pause("a")
	}, []string{"pause a: the node is crashed, for 3s now"}},
	{"running", func(t *testing.T, c *clustertest.Cluster) { c.Start("a") },
		[]string{"start a: the node is running, for 0s now"}},
	{"paused", func(t *testing.T, c *clustertest.Cluster) {
		c.Pause("a")
		c.Stop("a")
	}, []string{"stop a: the node is paused"}},
	{"not-paused", func(t *testing.T, c *clustertest.Cluster) { c.Resume("a") },
		[]string{"resume a: the node is running"}},
	{"itself", func(t *testing.T, c *clustertest.Cluster) { c.Cut("a", "a") },
		[]string{"cut a-a: a node is not cut off from itself"}},
	{"two-sides", func(t *testing.T, c *clustertest.Cluster) {
		c.Partition([]cluster.NodeID{"a"}, []cluster.NodeID{"b", "a"})
	}, []string{"partition [[a] [b a]]: node a is named twice"}},
	{"waits-for-paused", func(t *testing.T, c *clustertest.Cluster) {
		c.Pause("a")
		c.Node("a").Status()
	}, []string{"node a was paused for 1h0m0s, the limit; did the test call one of its methods that wait for Resume?"}},
}

func TestFailuresSayWhatHappened(t *testing.T) {
	for _, failure := range failures {
		t.Run(failure.name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestThatFails$")
			cmd.Env = append(os.Environ(), failing+"="+failure.name)
			out, err := cmd.CombinedOutput()
			require.Error(t, err, "the test passed")
			for _, text := range failure.want {
				require.Contains(t, string(out), text)
			}
			require.NotContains(t, string(out), "panic")
		})
	}
}

func TestThatFails(t *testing.T) {
	for _, failure := range failures {
		if failure.name == os.Getenv(failing) {
			clustertest.Run(t, three, failure.test)
		}
	}
}
