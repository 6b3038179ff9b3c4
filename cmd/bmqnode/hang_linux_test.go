package main_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/bmqelect/bmqelect/internal/testkit/nodes"
)

// Whoever reads the log stops reading: the node hangs at the next line. SIGTERM ends it
// in time nevertheless.
func TestANodeWhoseLogIsNotReadEndsInTime(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "log")
	require.NoError(t, unix.Mkfifo(log, 0o600))
	pipe, err := os.OpenFile(log, os.O_RDWR|unix.O_NONBLOCK, 0)
	require.NoError(t, err)
	t.Cleanup(func() { pipe.Close() })
	flags := append(nodes.SoleFlags(t), "--log-file", log, "--shutdown-timeout", "300ms")
	node := nodes.Launch(t, exec.Command(nodes.Binary, append([]string{"run"}, flags...)...))

	require.NoError(t, pipe.SetReadDeadline(time.Now().Add(nodes.Patience)))
	lines := bufio.NewScanner(pipe)
	for lines.Scan() && !strings.Contains(lines.Text(), "to=LEADER") {
	}
	require.NoError(t, lines.Err())
	require.NoError(t, pipe.SetWriteDeadline(time.Now().Add(200*time.Millisecond)))
	for err = nil; err == nil; {
		_, err = pipe.Write(make([]byte, 512))
	}
	require.ErrorIs(t, err, os.ErrDeadlineExceeded, "the pipe is full")
	require.NoError(t, node.Process.Signal(syscall.SIGTERM))
	require.NotZero(t, node.Code(t), "it says that something was wrong")
}
