package procs

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/bmqelect/bmqelect/internal/testkit"
)

// The kernel tells a child of the end of the thread that started it: the node must not take
// the end of a caller's thread for the end of this process.
func TestTheEndOfAThreadEndsNoNode(t *testing.T) {
	script := filepath.Join(t.TempDir(), "node")
	require.NoError(t, os.WriteFile(script,
		[]byte("#!/bin/sh\ntrap 'exit 4' TERM\nwhile echo lives; do sleep 0.02; done\n"), 0o700))
	lines, exits := make(chan Line, 1000), make(chan error, 1)
	m, err := New(Config{Binary: script, Names: Numbered(1), Dir: t.TempDir(), BasePort: 21_900,
		OnLine: func(l Line) { lines <- l }, OnExit: func(_ string, err error) { exits <- err }})
	require.NoError(t, err)
	started, thread := make(chan error), 0
	var start func()
	start = func() {
		runtime.LockOSThread() // and never unlocks it: the thread ends with the goroutine
		if thread = unix.Gettid(); thread == os.Getpid() {
			go start() // the first thread does not end
			return
		}
		started <- m.Start()
	}
	go start()
	require.NoError(t, <-started)
	require.Eventually(t, func() bool {
		_, err := os.Stat(fmt.Sprint("/proc/self/task/", thread))
		return os.IsNotExist(err)
	}, testkit.Limit(10*time.Second), time.Millisecond)
	for len(lines) > 0 {
		<-lines
	}
	for range 3 {
		select {
		case <-lines:
		case err := <-exits:
			require.NoError(t, err, "nothing has stopped it")
		}
	}
	require.NoError(t, m.nodes[0].Kill())
	require.NoError(t, m.Stop(t.Context()))
}
