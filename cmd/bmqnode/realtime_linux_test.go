package main_test

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/bmqelect/bmqelect/cluster"
)

// All threads of the node have the policy, those that the runtime starts later too.
func TestRealTimeIsForEveryThread(t *testing.T) {
	t.Parallel()
	if !mayBeRealTime() {
		t.Skip("real-time scheduling is not permitted here")
	}
	s := play(t, 1, map[string]any{"realtime": true})
	s.agree(s.Nodes(), func(g cluster.GroupStatus) bool { return g.Leading })
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", s.Nodes()[0].Pid()))
	require.NoError(t, err)
	for _, thread := range threads {
		id, err := strconv.Atoi(thread.Name())
		require.NoError(t, err)
		attr, err := unix.SchedGetAttr(id, 0)
		require.NoError(t, err)
		require.EqualValues(t, unix.SCHED_RR, attr.Policy, "thread %d of %d", id, len(threads))
	}
}

func mayBeRealTime() bool {
	done := make(chan bool)
	go func() {
		runtime.LockOSThread() // and never unlocks it: the thread ends with the goroutine
		rr := unix.SchedAttr{Policy: unix.SCHED_RR, Priority: 1}
		done <- unix.SchedSetAttr(0, &rr, 0) == nil
	}()
	return <-done
}
