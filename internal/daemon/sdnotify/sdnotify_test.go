package sdnotify

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// patience bounds what must happen.
const patience = 10 * time.Second

// manager is a service manager's end of the protocol.
type manager struct {
	t    *testing.T
	conn *net.UnixConn
}

func listen(t *testing.T, socket string) manager {
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	return manager{t, conn}
}

// start sets the environment as the manager would, and connects.
func (m manager) start(socket, watchdog, pid string) *Notifier {
	m.t.Setenv(socketVar, socket)
	m.t.Setenv(intervalVar, watchdog)
	m.t.Setenv(processVar, pid)
	n, err := FromEnvironment()
	require.NoError(m.t, err)
	m.t.Cleanup(func() { n.Close() })
	return n
}

func (m manager) read() string {
	m.t.Helper()
	require.NoError(m.t, m.conn.SetReadDeadline(time.Now().Add(patience)))
	buf := make([]byte, 4096)
	n, err := m.conn.Read(buf)
	require.NoError(m.t, err)
	return string(buf[:n])
}

func TestMessagesReachTheManager(t *testing.T) {
	for name, socket := range map[string]string{
		"path":     filepath.Join(t.TempDir(), "s"),
		"abstract": fmt.Sprintf("@bmqelect-%d-%s", os.Getpid(), t.Name()),
	} {
		t.Run(name, func(t *testing.T) {
			if socket[0] == '@' && !abstractSockets {
				t.Skip("this system has no abstract sockets")
			}
			m := listen(t, socket)
			n := m.start(socket, "", "")
			require.NoError(t, n.Ready("looks for a leader"))
			require.Equal(t, "READY=1\nSTATUS=looks for a leader", m.read())
			require.NoError(t, n.Status("two\nlines"))
			require.Equal(t, "STATUS=two lines", m.read(), "a line break would begin another assignment")
			require.NoError(t, n.Status(strings.Repeat("x", 255)+"\u00e9"))
			require.Equal(t, "STATUS="+strings.Repeat("x", 255), m.read(), "no half of a letter")
			require.NoError(t, n.Stopping())
			require.Equal(t, "STOPPING=1\nSTATUS=stopping", m.read())
		})
	}
}

func TestChildrenDoNotInherit(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	listen(t, socket).start(socket, "1000000", strconv.Itoa(os.Getpid()))
	for _, name := range []string{socketVar, intervalVar, processVar} {
		_, there := os.LookupEnv(name)
		require.False(t, there, name)
	}
}

func TestWithoutAManagerNothingIsSent(t *testing.T) {
	for _, name := range []string{socketVar, intervalVar, processVar} {
		t.Setenv(name, "")
	}
	n, err := FromEnvironment()
	require.NoError(t, err)
	require.Nil(t, n)
	require.NoError(t, n.Ready("x"))
	require.NoError(t, n.Status("x"))
	require.NoError(t, n.Stopping())
	require.Zero(t, n.Watchdog())
	n.Watch(t.Context(), func() bool { panic("nobody asked") }, nil)
	require.NoError(t, n.Close())
}

func TestBadEnvironmentsAreNamed(t *testing.T) {
	dir := t.TempDir()
	socket := filepath.Join(dir, "s")
	listen(t, socket)
	for name, c := range map[string]struct{ socket, watchdog, want string }{
		"relative path":   {"s", "", `NOTIFY_SOCKET is "s", but must be an absolute path`},
		"nobody there":    {filepath.Join(dir, "none"), "", "NOTIFY_SOCKET: dial unixgram " + dir},
		"no number":       {socket, "10s", `WATCHDOG_USEC is "10s", but must be a positive number of microseconds`},
		"not positive":    {socket, "0", `WATCHDOG_USEC is "0"`},
		"out of any time": {socket, "9223372036854775807", `WATCHDOG_USEC is "9223372036854775807"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(socketVar, c.socket)
			t.Setenv(intervalVar, c.watchdog)
			t.Setenv(processVar, "")
			n, err := FromEnvironment()
			require.ErrorContains(t, err, c.want)
			require.Nil(t, n)
		})
	}
}

func TestTheWatchdogOfAnotherProcessIsNotOurs(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	m := listen(t, socket)
	require.Equal(t, 3*time.Second, m.start(socket, "3000000", "").Watchdog())
	require.Equal(t, 3*time.Second, m.start(socket, "3000000", strconv.Itoa(os.Getpid())).Watchdog())
	require.Zero(t, m.start(socket, "3000000", "1").Watchdog())
}

func TestAManagerThatDoesNotReadHoldsNobodyUp(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	m := listen(t, socket)
	n := m.start(socket, "", "")
	var err error
	for range 10_000 { // far more than any socket's queue
		if err = n.Status("again"); err != nil {
			break
		}
	}
	require.ErrorContains(t, err, "tell the service manager STATUS=again: it has not read for 1s")
	require.Equal(t, "STATUS=again", m.read())
	require.NoError(t, n.Status("once more"), "it reads again")
}

func TestTheDeadManagerIsNamed(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	m := listen(t, socket)
	n := m.start(socket, "", "")
	require.NoError(t, m.conn.Close())
	require.ErrorContains(t, n.Ready("x"), "tell the service manager READY=1")
}
