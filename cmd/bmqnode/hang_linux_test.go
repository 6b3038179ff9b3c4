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
	flags := append(soleFlags(t), "--log-file", log, "--shutdown-timeout", "300ms")
	cmd := exec.Command(binary, append([]string{"run"}, flags...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	require.NoError(t, cmd.Start())
	gone := make(chan error, 1)
	go func() { gone <- cmd.Wait() }()
	t.Cleanup(func() { _ = cmd.Process.Kill() })

	require.NoError(t, pipe.SetReadDeadline(time.Now().Add(patience)))
	lines := bufio.NewScanner(pipe)
	for lines.Scan() && !strings.Contains(lines.Text(), "to=LEADER") {
	}
	require.NoError(t, lines.Err())
	require.NoError(t, pipe.SetWriteDeadline(time.Now().Add(200*time.Millisecond)))
	for err = nil; err == nil; {
		_, err = pipe.Write(make([]byte, 512))
	}
	require.ErrorIs(t, err, os.ErrDeadlineExceeded, "the pipe is full")
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	select {
	case err := <-gone:
		require.Error(t, err, "it says that something was wrong")
	case <-time.After(patience):
		require.Fail(t, "it does not end")
	}
}
