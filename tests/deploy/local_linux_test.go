package deploy

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

	"github.com/bmqelect/bmqelect/internal/testkit/nodes"
)

// localRecipe is the recipe as it stands, in its own directory and on an address of the test's own.
func localRecipe(t *testing.T, host string) (cmd *exec.Cmd, dir string) {
	t.Helper()
	files, err := filepath.Glob(recipes + "local/*")
	require.NoError(t, err)
	dir = t.TempDir()
	for _, name := range files {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		writeIn(t, dir, filepath.Base(name), strings.ReplaceAll(string(text), "127.0.0.1", host))
	}
	cmd = exec.Command("sh", "./start.sh", "--initial-wait", "1600ms", "--max-random-wait", "500ms",
		"--heartbeat-broadcast", "250ms", "--heartbeat-miss-count", "6", "--lease", "1500ms")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(nodes.Binary)+":"+os.Getenv("PATH"))
	return cmd, dir
}

// The recipe is played as it stands, on an address of the test's own.
func TestTheLocalRecipeRunsThreeNodes(t *testing.T) {
	t.Parallel()
	host := ownLoopback(20)
	cmd, dir := localRecipe(t, host)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	shell := nodes.Launch(t, cmd)
	t.Cleanup(func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })

	at := host + ":7402," + host + ":7405," + host + ":7408"
	require.Eventually(t, func() bool {
		stdout, _, _ := nodes.Run(t, "status", "--admin", at)
		return len(regexp.MustCompile(`(?m)^[abc] +LEADER `).FindAllString(stdout, -1)) == 1 &&
			strings.Count(stdout, "FOLLOWER") == 2
	}, nodes.Patience, 50*time.Millisecond, "one leads, two follow")
	require.NoError(t, syscall.Kill(-cmd.Process.Pid, syscall.SIGINT), "as a terminal does at Ctrl-C")
	require.Zero(t, shell.Code(t))
	for _, node := range []string{"a", "b", "c"} {
		log, err := os.ReadFile(filepath.Join(dir, "data", node+".log"))
		require.NoError(t, err)
		require.Contains(t, string(log), "reason=STOPPED", "it ended in good order")
	}
	nodes.Fails(t, 1, "no node answers", "status", "--admin", at)
}

func TestTheLocalRecipeNamesATakenPort(t *testing.T) {
	t.Parallel()
	host := ownLoopback(21)
	taken, err := net.Listen("tcp", host+":7404")
	require.NoError(t, err)
	defer taken.Close()
	cmd, dir := localRecipe(t, host)
	shell := nodes.Launch(t, cmd)
	require.NotZero(t, shell.Code(t))
	said := shell.Said.String()
	require.Contains(t, said, "b.yaml: --mesh-addr: listen tcp "+host+":7404: bind: address "+
		"already in use; stop the process that has the port, or choose another port")
	require.Contains(t, said, "start.sh: nothing is started; change ")
	pids, err := filepath.Glob(filepath.Join(dir, "data", "*"))
	require.NoError(t, err)
	require.Empty(t, pids)
}
