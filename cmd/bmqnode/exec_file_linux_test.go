package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/bmqelect/bmqelect/internal/testkit/nodes"
)

// fileOf writes a file with the options of a node that is its cluster, and others.
func fileOf(t *testing.T, more ...string) string {
	var text strings.Builder
	flags := nodes.SoleFlags(t)
	for i := 0; i < len(flags); i += 2 {
		fmt.Fprintf(&text, "%s: %q\n", strings.TrimPrefix(flags[i], "--"), flags[i+1])
	}
	file := filepath.Join(t.TempDir(), "node.yaml")
	text.WriteString(strings.Join(more, "\n"))
	require.NoError(t, os.WriteFile(file, []byte(text.String()), 0o600))
	return file
}

// A group of which nothing is run is led all the same.
func TestOneFileServesRunAndExec(t *testing.T) {
	t.Parallel()
	file := fileOf(t, "realtime: true", "supervised: true", "groups: [east, west]")
	nodes.Does(t, "run", "--check", file)
	x := startExec(t, []string{"--config", file, "--group", "west"},
		sh("echo $BMQ_GROUP; trap 'exit 0' TERM; while :; do sleep 0.01; done"))
	x.prints("west\n")
	for _, group := range []string{"default", "east", "west"} {
		x.eventually(group+" is led", func() bool {
			return strings.Contains(x.said(), "group="+group+" term=1 from=CANDIDATE to=LEADER")
		})
	}
}

// The node and the supervisor run first. The command does not: it may compute for long.
func TestUnderExecTheNodeIsRealTimeAndTheCommandIsNot(t *testing.T) {
	t.Parallel()
	if !nodes.MayBeRealTime() {
		t.Skip("real-time scheduling is not permitted here")
	}
	x := startExec(t, []string{"--config", fileOf(t, "realtime: true")},
		sh("sh -c 'echo $PPID $$; exec sleep 60'; :"))
	x.prints("\n")
	policy := func(pid int) uint32 {
		attr, err := unix.SchedGetAttr(pid, 0)
		require.NoError(t, err)
		return attr.Policy
	}
	for _, pid := range strings.Fields(x.out.String()) {
		id, err := strconv.Atoi(pid)
		require.NoError(t, err)
		require.EqualValues(t, unix.SCHED_NORMAL, policy(id), "of the command")
	}
	command := strings.Fields(x.out.String())[0]
	stat, err := os.ReadFile("/proc/" + command + "/stat")
	require.NoError(t, err)
	supervisor, err := strconv.Atoi(strings.Fields(string(stat))[3]) // sh has no space in it
	require.NoError(t, err)
	require.EqualValues(t, unix.SCHED_RR, policy(supervisor), "of the supervisor")
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", x.cmd.Process.Pid))
	require.NoError(t, err)
	for _, thread := range threads {
		id, err := strconv.Atoi(thread.Name())
		require.NoError(t, err)
		require.EqualValues(t, unix.SCHED_RR, policy(id), "of a thread of the node")
	}
}
