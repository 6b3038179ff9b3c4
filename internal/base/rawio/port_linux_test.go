package rawio_test

import (
	"bytes"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/internal/base/rawio"
)

// pair are the two ends of a TCP connection on loopback.
func pair(t testing.TB) (a, b *net.TCPConn) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	dialed, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	accepted, err := l.Accept()
	require.NoError(t, err)
	t.Cleanup(func() { dialed.Close(); accepted.Close() })
	return dialed.(*net.TCPConn), accepted.(*net.TCPConn)
}

func raw(t testing.TB, c *net.TCPConn) syscall.RawConn {
	r, err := c.SyscallConn()
	require.NoError(t, err)
	return r
}

// More than the kernel's buffers hold passes whole, and then the end of the stream.
func TestWhatIsWrittenIsRead(t *testing.T) {
	a, b := pair(t)
	sent := bytes.Repeat([]byte("0123456789abcdef"), 1<<20)
	failed := make(chan error, 1)
	go func() {
		_, err := rawio.Writer(raw(t, a)).Write(sent)
		failed <- err
		_ = a.CloseWrite()
	}()
	got, err := io.ReadAll(rawio.Reader(raw(t, b)))
	require.NoError(t, err)
	require.NoError(t, <-failed)
	require.True(t, bytes.Equal(sent, got))
}

func TestDeadlinesEndWaiting(t *testing.T) {
	a, _ := pair(t)
	r, w := rawio.Reader(raw(t, a)), rawio.Writer(raw(t, a))
	require.NoError(t, a.SetDeadline(time.Now().Add(time.Millisecond)))
	_, err := r.Read(make([]byte, 1))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	_, err = w.Write(make([]byte, 64<<20))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
}

func TestErrorsSayWhatEndedTheConnection(t *testing.T) {
	a, b := pair(t)
	r := rawio.Reader(raw(t, a))
	require.NoError(t, b.SetLinger(0))
	require.NoError(t, b.Close())
	_, err := r.Read(make([]byte, 1))
	require.ErrorIs(t, err, syscall.ECONNRESET)
	require.NoError(t, a.Close())
	_, err = r.Read(make([]byte, 1))
	require.ErrorIs(t, err, net.ErrClosed)
}

func TestNothingIsAllocated(t *testing.T) {
	a, b := pair(t)
	w, r := rawio.Writer(raw(t, a)), rawio.Reader(raw(t, b))
	buf := make([]byte, 8)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		_, _ = w.Write(buf)
		_, _ = r.Read(buf)
	}))
}
