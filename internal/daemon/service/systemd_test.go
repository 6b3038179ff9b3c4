package service

import (
	"context"
	"net"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/bmqelect/bmqelect/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// manager is a service manager's end of the protocol.
type manager struct {
	t    *testing.T
	conn *net.UnixConn
}

// manage sets the environment as a manager would.
func manage(t *testing.T, watchdog, pid string) manager {
	socket := filepath.Join(t.TempDir(), "s")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	t.Setenv("NOTIFY_SOCKET", socket)
	t.Setenv("WATCHDOG_USEC", watchdog)
	t.Setenv("WATCHDOG_PID", pid)
	return manager{t, conn}
}

// read returns the next message; "" if there is none in time.
func (m manager) read(wait time.Duration) string {
	require.NoError(m.t, m.conn.SetReadDeadline(time.Now().Add(wait)))
	buf := make([]byte, 4096)
	n, _ := m.conn.Read(buf)
	return string(buf[:n])
}

var patience = testkit.Limit(10 * time.Second)

const silence = 300 * time.Millisecond // many intervals of the watchdog

// watch runs giveSigns with an interval of 20 ms until the test ends.
func watch(t *testing.T, alive func() bool, failed func(error)) manager {
	m := manage(t, "20000", "")
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { giveSigns(ctx, alive, failed) })
	t.Cleanup(func() { cancel(); wg.Wait() })
	return m
}

func TestMessagesReachTheManager(t *testing.T) {
	m := manage(t, "", "")
	require.NoError(t, notify("READY=1\nSTATUS=no leader"))
	require.Equal(t, "READY=1\nSTATUS=no leader", m.read(patience))
	require.NoError(t, m.conn.Close())
	require.ErrorContains(t, notify("READY=1"), "dial unixgram")
}

func TestWithoutAManagerNothingIsSent(t *testing.T) {
	for _, env := range [][3]string{{"", "", ""}, {"", "", "1"}, {"", "20000", "1"}} {
		t.Setenv("NOTIFY_SOCKET", env[0])
		t.Setenv("WATCHDOG_USEC", env[1])
		t.Setenv("WATCHDOG_PID", env[2])
		require.NoError(t, notify("READY=1"))
		giveSigns(t.Context(), func() bool { panic("no sign is wanted") },
			func(err error) { require.NoError(t, err) })
	}
	t.Setenv("WATCHDOG_USEC", "soon")
	giveSigns(t.Context(), nil, func(err error) { require.ErrorContains(t, err, "WATCHDOG_USEC") })
	t.Setenv("WATCHDOG_USEC", "9223372036854775807")
	t.Setenv("WATCHDOG_PID", strconv.Itoa(1))
	giveSigns(t.Context(), nil, func(error) {})
}

func TestAManagerThatDoesNotReadHoldsNothingUp(t *testing.T) {
	m := manage(t, "", "")
	var err error
	for range 10_000 { // far more than any socket's queue
		if err = notify("STATUS=again"); err != nil {
			break
		}
	}
	require.ErrorContains(t, err, "it has not read for 1s")
	for m.read(silence) != "" { // one of them was still under way
	}
	require.NoError(t, notify("STATUS=once more"), "it reads again")
}

func TestSignsOfLifeWhileAlive(t *testing.T) {
	var dead atomic.Bool
	m := watch(t, func() bool { return !dead.Load() }, func(error) {})
	for range 3 {
		require.Equal(t, "WATCHDOG=1", m.read(patience))
	}
	dead.Store(true)
	for m.read(100*time.Millisecond) != "" { // what was under way
	}
	require.Empty(t, m.read(silence))
	dead.Store(false)
	require.Equal(t, "WATCHDOG=1", m.read(patience))
}

func TestNoSignWhileTheServiceHangs(t *testing.T) {
	answer := make(chan bool)
	m := watch(t, func() bool { return <-answer }, func(error) {})
	require.Empty(t, m.read(silence))
	answer <- true
	require.Equal(t, "WATCHDOG=1", m.read(patience))
	require.Empty(t, m.read(silence))
	close(answer)
}

func TestASignThatCannotBeSentIsTold(t *testing.T) {
	errs, begun := make(chan error, 1), make(chan struct{})
	m := watch(t, func() bool { <-begun; return true }, func(err error) {
		select {
		case errs <- err:
		default:
		}
	})
	require.NoError(t, m.conn.Close())
	close(begun)
	require.ErrorContains(t, <-errs, "dial unixgram")
}
