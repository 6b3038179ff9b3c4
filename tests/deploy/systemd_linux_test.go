package deploy

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/internal/testkit"
	"github.com/bmqelect/bmqelect/internal/testkit/nodes"
)

// manager listens as systemd does, until the test ends. What it is told is a line each.
func manager(t *testing.T) (socket string, told *testkit.Buffer) {
	socket, told = filepath.Join(t.TempDir(), "notify"), &testkit.Buffer{}
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	require.NoError(t, err)
	var wg sync.WaitGroup
	wg.Go(func() {
		for buf := make([]byte, 4096); ; {
			size, err := conn.Read(buf)
			if err != nil {
				return
			}
			_, _ = told.Write(append(buf[:size:size], '\n'))
		}
	})
	t.Cleanup(func() { conn.Close(); wg.Wait() })
	return socket, told
}

func count(told *testkit.Buffer, line string) int { return strings.Count(told.String(), line+"\n") }

// unmanaged is this process's environment without what a manager may have put in.
func unmanaged() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "NOTIFY_SOCKET=") || strings.HasPrefix(v, "WATCHDOG_")
	})
}

func TestTheServiceManagerIsTold(t *testing.T) {
	t.Parallel()
	socket, told := manager(t)
	first, second := ownLoopback(10), ownLoopback(11)
	dir := t.TempDir()
	command := func(name, host string) *exec.Cmd {
		return exec.Command(nodes.Binary, slices.Concat([]string{"run", "--node", name, "--voters", "a,b",
			"--data-dir", t.TempDir(),
			"--join", first + ":7400", "--gossip-addr", host + ":7400", "--mesh-addr", host + ":7401",
			"--admin-addr", host + ":7402",
			"--on-leader", "env >" + filepath.Join(dir, "leader"), "--on-follower", "env >" +
				filepath.Join(dir, "follower")}, quickFlags)...)
	}
	cmd := command("a", first)
	cmd.Env = append(unmanaged(), "NOTIFY_SOCKET="+socket, "WATCHDOG_USEC=100000")
	node := nodes.Launch(t, cmd)
	eventually := func(what string, cond func() bool) {
		t.Helper()
		require.Eventually(t, cond, nodes.Patience, 5*time.Millisecond, what)
	}

	eventually("it is ready", func() bool { return count(told, "READY=1") == 1 })
	const ready = "STATUS=starting\nREADY=1\nSTATUS=no leader; follower in term 0\n"
	require.True(t, strings.HasPrefix(told.String(), ready), "ready without a leader: %s", told)
	other := command("b", second)
	other.Env = unmanaged()
	nodes.Launch(t, other)
	leader := regexp.MustCompile(`\nSTATUS=(leads|follows b) in term `)
	eventually("it tells of its leader", func() bool { return leader.MatchString(told.String()) })

	signs := count(told, "WATCHDOG=1")
	eventually("signs of life", func() bool { return count(told, "WATCHDOG=1") > signs+3 })

	require.NoError(t, cmd.Process.Signal(syscall.SIGSTOP))
	stoppedAt := quietFrom(t, told)
	require.NoError(t, cmd.Process.Signal(syscall.SIGCONT))
	eventually("it lives again", func() bool { return count(told, "WATCHDOG=1") > stoppedAt })

	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.Zero(t, node.Code(t))
	var inherited []byte
	eventually("a hook of a ran", func() bool {
		leader, _ := os.ReadFile(filepath.Join(dir, "leader"))
		follower, _ := os.ReadFile(filepath.Join(dir, "follower"))
		inherited = slices.Concat(leader, follower)
		return strings.Contains(string(inherited), "BMQ_NODE=a")
	})
	require.NotRegexp(t, "NOTIFY_SOCKET|WATCHDOG_", string(inherited))
	eventually("it said goodbye", func() bool { return count(told, "STOPPING=1") == 1 })
}

// quietFrom requires that no sign of life comes for ten intervals, once what was
// under way when the process stopped has arrived.
func quietFrom(t *testing.T, told *testkit.Buffer) (signs int) {
	const interval = 100 * time.Millisecond
	signs = count(told, "WATCHDOG=1")
	deadline, quiet := time.Now().Add(nodes.Patience), time.Now()
	for time.Since(quiet) < 10*interval {
		require.True(t, time.Now().Before(deadline), "a stopped process gives signs of life")
		<-time.After(interval / 10)
		if now := count(told, "WATCHDOG=1"); now != signs {
			signs, quiet = now, time.Now()
		}
	}
	return signs
}

func TestAServiceManagerThatIsNotThereIsNamed(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(nodes.Binary, "run", "--node", "a", "--voters", "a", "--data-dir", t.TempDir())
	cmd.Env = append(unmanaged(), "NOTIFY_SOCKET="+t.TempDir()+"/none")
	out, err := cmd.CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), "notify socket of the service manager, NOTIFY_SOCKET")
}

// TestAHungNodeIsStartedAgain: what the watchdog's SIGABRT leaves is no exit status that keeps
// systemd from that. A supervised node gives signs of life, too, and its parent passes it on.
func TestAHungNodeIsStartedAgain(t *testing.T) {
	t.Parallel()
	unit, err := os.ReadFile(recipes + "systemd/bmqnode.service")
	require.NoError(t, err)
	setting := func(name string) string {
		_, value, found := strings.Cut(string(unit), "\n"+name+"=")
		require.True(t, found, name)
		value, _, _ = strings.Cut(value, "\n")
		return value
	}
	require.Equal(t, "2", setting("RestartPreventExitStatus"))
	require.Equal(t, "SIGABRT", setting("WatchdogSignal"))
	for _, supervised := range []string{"false", "true"} {
		t.Run("supervised="+supervised, func(t *testing.T) {
			t.Parallel()
			socket, told := manager(t)
			flags := slices.Concat([]string{"run", "--supervised=" + supervised}, nodes.SoleFlags(t))
			// The manager names the process that it starts.
			cmd := exec.Command("sh", append([]string{"-c", `WATCHDOG_PID=$$ exec "$0" "$@"`, nodes.Binary},
				flags...)...)
			cmd.Env = append(unmanaged(), "NOTIFY_SOCKET="+socket, "WATCHDOG_USEC=100000",
				setting("Environment"))
			node := nodes.Launch(t, cmd)
			require.Eventually(t, func() bool {
				return count(told, "READY=1") == 1 && count(told, "WATCHDOG=1") > 3
			}, nodes.Patience, 5*time.Millisecond)
			require.NoError(t, cmd.Process.Signal(syscall.SIGABRT))
			require.NotContains(t, []int{0, 2}, node.Code(t))
			require.Contains(t, node.Said.String(), "SIGABRT: abort")
			require.Contains(t, node.Said.String(), "goroutine ")
			quietFrom(t, told) // nobody is left
		})
	}
}
