package sdnotify

import (
	"context"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// watched runs Watch with an interval of 20 ms until the test ends.
func watched(t *testing.T, alive func() bool, failed func(error)) manager {
	socket := filepath.Join(t.TempDir(), "s")
	m := listen(t, socket)
	n := m.start(socket, "20000", "")
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { n.Watch(ctx, alive, failed) })
	t.Cleanup(func() { cancel(); wg.Wait() })
	return m
}

// silent requires that nothing comes for many intervals.
func (m manager) silent() {
	m.t.Helper()
	require.NoError(m.t, m.conn.SetReadDeadline(time.Now().Add(300*time.Millisecond)))
	buf := make([]byte, 64)
	n, err := m.conn.Read(buf)
	require.Error(m.t, err, string(buf[:n]))
}

func TestSignsOfLifeWhileAlive(t *testing.T) {
	var dead atomic.Bool
	m := watched(t, func() bool { return !dead.Load() }, nil)
	for range 3 {
		require.Equal(t, "WATCHDOG=1", m.read())
	}
	dead.Store(true)
	m.drain()
	m.silent()
	dead.Store(false)
	require.Equal(t, "WATCHDOG=1", m.read())
}

// drain reads what was sent before the service died: one sign may be under way.
func (m manager) drain() {
	require.NoError(m.t, m.conn.SetReadDeadline(time.Now().Add(100*time.Millisecond)))
	for buf := make([]byte, 64); ; {
		if _, err := m.conn.Read(buf); err != nil {
			return
		}
	}
}

func TestNoSignWhileTheServiceHangs(t *testing.T) {
	answer := make(chan bool)
	m := watched(t, func() bool { return <-answer }, nil)
	m.silent()
	answer <- true
	require.Equal(t, "WATCHDOG=1", m.read())
	m.silent()
	close(answer)
}

func TestASignThatCannotBeSentIsTold(t *testing.T) {
	errs := make(chan error, 1)
	var m manager
	begun := make(chan struct{})
	m = watched(t, func() bool { <-begun; return true }, func(err error) {
		select {
		case errs <- err:
		default:
		}
	})
	require.NoError(t, m.conn.Close())
	close(begun)
	require.ErrorContains(t, <-errs, "tell the service manager WATCHDOG=1")
}

func TestAnUnwatchedServiceIsNotAsked(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	n := listen(t, socket).start(socket, "", "")
	n.Watch(t.Context(), func() bool { panic("nobody asked") }, nil)
}
