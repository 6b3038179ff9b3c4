package main_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// localRecipe is the recipe as it stands, in its own directory and on an address of the test's own.
func localRecipe(t *testing.T, host string) (cmd *exec.Cmd, dir string) {
	t.Helper()
	files, err := filepath.Glob("../../deploy/local/*")
	require.NoError(t, err)
	dir = t.TempDir()
	for _, name := range files {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		text = []byte(strings.ReplaceAll(string(text), "127.0.0.1", host))
		require.NoError(t, os.WriteFile(filepath.Join(dir, filepath.Base(name)), text, 0o755))
	}
	cmd = exec.Command("sh", "./start.sh", "--initial-wait", "1600ms", "--max-random-wait", "500ms",
		"--heartbeat-broadcast", "250ms", "--heartbeat-miss-count", "6", "--lease", "1500ms")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(binary)+":"+os.Getenv("PATH"))
	return cmd, dir
}

// The recipe is played as it stands, on an address of the test's own.
func TestTheLocalRecipeRunsThreeNodes(t *testing.T) {
	t.Parallel()
	host := ownLoopback(20)
	cmd, dir := localRecipe(t, host)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var said lockedBuffer
	cmd.Stdout, cmd.Stderr = &said, &said
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })

	nodes := host + ":7402," + host + ":7405," + host + ":7408"
	require.Eventually(t, func() bool {
		stdout, _, _ := bmqnode(t, "status", "--admin", nodes)
		return len(regexp.MustCompile(`(?m)^[abc] +LEADER `).FindAllString(stdout, -1)) == 1 &&
			strings.Count(stdout, "FOLLOWER") == 2
	}, patience, 50*time.Millisecond, "one leads, two follow")
	stuck := time.AfterFunc(patience, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	defer stuck.Stop()
	require.NoError(t, syscall.Kill(-cmd.Process.Pid, syscall.SIGINT), "as a terminal does at Ctrl-C")
	require.NoError(t, cmd.Wait(), string(said.Bytes()))
	for _, node := range []string{"a", "b", "c"} {
		log, err := os.ReadFile(filepath.Join(dir, "data", node+".log"))
		require.NoError(t, err)
		require.Contains(t, string(log), "reason=STOPPED", "it ended in good order")
	}
	_, stderr, code := bmqnode(t, "status", "--admin", nodes)
	require.Equal(t, 1, code, "all have ended: %s", stderr)
}

func TestTheLocalRecipeNamesATakenPort(t *testing.T) {
	t.Parallel()
	host := ownLoopback(21)
	taken, err := net.Listen("tcp", host+":7404")
	require.NoError(t, err)
	defer taken.Close()
	cmd, dir := localRecipe(t, host)
	stuck := time.AfterFunc(patience, func() { _ = cmd.Process.Signal(syscall.SIGTERM) })
	defer stuck.Stop()
	said, err := cmd.CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(said), "b.yaml: --mesh-addr: listen tcp "+host+":7404: bind: address "+
		"already in use; stop the process that has the port, or choose another port")
	require.Contains(t, string(said), "start.sh: nothing is started; change ")
	pids, err := filepath.Glob(filepath.Join(dir, "data", "*"))
	require.NoError(t, err)
	require.Empty(t, pids)
}
