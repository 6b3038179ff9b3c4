package main_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// notified is what a service manager has been told on its socket.
type notified struct {
	mu   sync.Mutex
	told []string
}

// manager listens as systemd does, until the test ends.
func manager(t *testing.T) (socket string, n *notified) {
	socket = filepath.Join(t.TempDir(), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	require.NoError(t, err)
	n = &notified{}
	var wg sync.WaitGroup
	wg.Go(func() {
		for buf := make([]byte, 4096); ; {
			size, err := conn.Read(buf)
			if err != nil {
				return
			}
			n.mu.Lock()
			n.told = append(n.told, strings.Split(string(buf[:size]), "\n")...)
			n.mu.Unlock()
		}
	})
	t.Cleanup(func() { conn.Close(); wg.Wait() })
	return socket, n
}

func (n *notified) count(assignment string) (count int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, told := range n.told {
		if told == assignment {
			count++
		}
	}
	return count
}

func (n *notified) begins(prefix string) bool {
	return slices.ContainsFunc(n.all(),
		func(told string) bool { return strings.HasPrefix(told, prefix) })
}

func (n *notified) all() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.told)
}

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
	node := func(name, host string) *exec.Cmd {
		return exec.Command(binary, slices.Concat([]string{"run", "--node", name, "--voters", "a,b",
			"--data-dir", t.TempDir(),
			"--join", first + ":7400", "--gossip-addr", host + ":7400", "--mesh-addr", host + ":7401",
			"--admin-addr", host + ":7402",
			"--on-leader", "env >" + filepath.Join(dir, "leader"), "--on-follower", "env >" +
				filepath.Join(dir, "follower")}, quickFlags)...)
	}
	cmd := node("a", first)
	cmd.Env = append(unmanaged(), "NOTIFY_SOCKET="+socket, "WATCHDOG_USEC=100000")
	launched(t, cmd)
	eventually := func(what string, cond func() bool) {
		t.Helper()
		require.Eventually(t, cond, patience, 5*time.Millisecond, what)
	}

	eventually("it is ready", func() bool { return told.count("READY=1") == 1 })
	require.Equal(t, []string{"STATUS=starting", "READY=1", "STATUS=no leader; follower in term 0"},
		told.all()[:3], "ready without a leader")
	other := node("b", second)
	other.Env = unmanaged()
	launched(t, other)
	eventually("it tells of its leader", func() bool {
		return told.begins("STATUS=leads in term ") ||
			told.begins("STATUS=follows b in term ")
	})

	signs := told.count("WATCHDOG=1")
	eventually("signs of life", func() bool { return told.count("WATCHDOG=1") > signs+3 })

	require.NoError(t, cmd.Process.Signal(syscall.SIGSTOP))
	stoppedAt := quietFrom(t, told)
	require.NoError(t, cmd.Process.Signal(syscall.SIGCONT))
	eventually("it lives again", func() bool { return told.count("WATCHDOG=1") > stoppedAt })

	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, cmd.Wait())
	var inherited []byte
	eventually("a hook of a ran", func() bool {
		leader, _ := os.ReadFile(filepath.Join(dir, "leader"))
		follower, _ := os.ReadFile(filepath.Join(dir, "follower"))
		inherited = slices.Concat(leader, follower)
		return strings.Contains(string(inherited), "BMQ_NODE=a")
	})
	require.NotRegexp(t, "NOTIFY_SOCKET|WATCHDOG_", string(inherited))
	eventually("it said goodbye", func() bool { return told.count("STOPPING=1") == 1 })
}

// quietFrom requires that no sign of life comes for ten intervals, once what was
// under way when the process stopped has arrived.
func quietFrom(t *testing.T, told *notified) (count int) {
	const interval = 100 * time.Millisecond
	count = told.count("WATCHDOG=1")
	deadline, quiet := time.Now().Add(patience), time.Now()
	for time.Since(quiet) < 10*interval {
		require.True(t, time.Now().Before(deadline), "a stopped process gives signs of life")
		<-time.After(interval / 10)
		if now := told.count("WATCHDOG=1"); now != count {
			count, quiet = now, time.Now()
		}
	}
	return count
}

func TestAServiceManagerThatIsNotThereIsNamed(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(binary, "run", "--node", "a", "--voters", "a", "--data-dir", t.TempDir())
	cmd.Env = append(unmanaged(), "NOTIFY_SOCKET="+t.TempDir()+"/none")
	out, err := cmd.CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), "notify socket of the service manager, NOTIFY_SOCKET")
}

// TestAHungNodeIsStartedAgain: what the watchdog's SIGABRT leaves is no exit status that keeps
// systemd from that. A supervised node gives signs of life, too, and its parent passes it on.
func TestAHungNodeIsStartedAgain(t *testing.T) {
	t.Parallel()
	unit, err := os.ReadFile("../../deploy/systemd/bmqnode.service")
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
			flags := slices.Concat([]string{"run", "--supervised=" + supervised}, soleFlags(t))
			// The manager names the process that it starts.
			cmd := exec.Command("sh", append([]string{"-c", `WATCHDOG_PID=$$ exec "$0" "$@"`, binary},
				flags...)...)
			cmd.Env = append(unmanaged(), "NOTIFY_SOCKET="+socket, "WATCHDOG_USEC=100000",
				setting("Environment"))
			said := launched(t, cmd)
			require.Eventually(t, func() bool {
				return told.count("READY=1") == 1 && told.count("WATCHDOG=1") > 3
			}, patience, 5*time.Millisecond)
			require.NoError(t, cmd.Process.Signal(syscall.SIGABRT))
			require.Error(t, cmd.Wait())
			require.NotEqual(t, 2, cmd.ProcessState.ExitCode())
			require.Contains(t, string(said.Bytes()), "SIGABRT: abort")
			require.Contains(t, string(said.Bytes()), "goroutine ")
			quietFrom(t, told) // nobody is left
		})
	}
}
