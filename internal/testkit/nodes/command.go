package nodes

import (
	"bytes"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/internal/testkit"
)

// Run runs bmqnode to its end.
func Run(t testing.TB, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	return Ended(t, exec.Command(Binary, args...))
}

// RunWith runs bmqnode with more in its environment.
func RunWith(t testing.TB, env []string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := exec.Command(Binary, args...)
	cmd.Env = append(os.Environ(), env...)
	return Ended(t, cmd)
}

// Does runs a command that succeeds, and returns what it prints.
func Does(t testing.TB, args ...string) (stdout string) {
	t.Helper()
	stdout, stderr, code := Run(t, args...)
	require.Zero(t, code, "%s: %s%s", args, stdout, stderr)
	return stdout
}

// Fails runs a command that ends with a code and says what is wanted, and returns all it says.
func Fails(t testing.TB, code int, want string, args ...string) (said string) {
	t.Helper()
	stdout, stderr, got := Run(t, args...)
	require.Equal(t, code, got, "%s: %s%s", args, stdout, stderr)
	require.Contains(t, stdout+stderr, want, args)
	return stdout + stderr
}

// Ended runs cmd to its end.
func Ended(t testing.TB, cmd *exec.Cmd) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		require.ErrorAs(t, err, new(*exec.ExitError))
	}
	require.NotContains(t, errs.String(), "DATA RACE")
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// Launched is a process that runs beside the test, at most until it ends.
type Launched struct {
	*exec.Cmd
	Said testkit.Buffer // on both outputs, unless the command had others
	Gone chan struct{}  // closed when it has ended
}

// Launch starts a command, which is asked to end with the test and killed if it does not.
// What it said is shown if the test has failed.
func Launch(t testing.TB, cmd *exec.Cmd) *Launched {
	l := &Launched{Cmd: cmd, Gone: make(chan struct{})}
	if cmd.Stdout == nil {
		cmd.Stdout, cmd.Stderr = &l.Said, &l.Said
	}
	cmd.WaitDelay = Patience
	require.NoError(t, cmd.Start())
	go func() { defer close(l.Gone); _ = cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGCONT) // it may be stopped
		_ = cmd.Process.Signal(syscall.SIGTERM)
		l.Code(t)
		if t.Failed() {
			t.Logf("%s said:\n%s", cmd.Args, &l.Said)
		}
	})
	return l
}

// Code waits for the end, and returns the exit status.
func (l *Launched) Code(t testing.TB) int {
	t.Helper()
	select {
	case <-l.Gone:
	case <-time.After(Patience):
		_ = l.Process.Kill()
		require.Fail(t, "does not end", "%s\n%s", l.Args, &l.Said)
	}
	return l.ProcessState.ExitCode()
}

// SoleFlags are the flags of a node that is its cluster, and leads soon.
func SoleFlags(t testing.TB) []string {
	return []string{
		"--node", "a", "--voters", "a", "--data-dir", t.TempDir(), "--gossip-addr", "127.0.0.1:0",
		"--mesh-addr", "127.0.0.1:0",
		"--admin-addr", "127.0.0.1:0", "--max-random-wait", "20ms",
	}
}
