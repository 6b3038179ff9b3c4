package rawcall_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/internal/base/rawcall"
)

// pair returns the two ends of a TCP connection on loopback.
func pair(t *testing.T) (near, far *net.TCPConn) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	a, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	b, err := l.Accept()
	require.NoError(t, err)
	t.Cleanup(func() { _, _ = a.Close(), b.Close() })
	return a.(*net.TCPConn), b.(*net.TCPConn)
}

// outcome is what a program can tell of the result of a call.
type outcome struct {
	Some         bool // bytes were read or written
	Op, Net      string
	EOF          bool
	Late, Closed bool
	Reset, Pipe  bool
}

func of(n int, err error) outcome {
	o := outcome{
		Some: n > 0, EOF: err == io.EOF, Late: errors.Is(err, os.ErrDeadlineExceeded),
		Closed: errors.Is(err, net.ErrClosed), Reset: errors.Is(err, syscall.ECONNRESET),
		Pipe: errors.Is(err, syscall.EPIPE),
	}
	var op *net.OpError
	if errors.As(err, &op) {
		o.Op, o.Net = op.Op, op.Net
	}
	return o
}

// soon calls f while another call waits, most likely.
func soon(f func()) { time.AfterFunc(20*time.Millisecond, f) }

var (
	some = make([]byte, 16)
	room = make([]byte, 16)
	much = make([]byte, 64<<20) // more than the kernel keeps of what nobody reads
)

// Each case ends the same way as with the connection of package net.
func TestCallsEndAsThoseOfAnyConnection(t *testing.T) {
	for name, play := range map[string]func(c net.Conn, far *net.TCPConn) (int, error){
		"read what came": func(c net.Conn, far *net.TCPConn) (int, error) {
			soon(func() { _, _ = far.Write(some) })
			return c.Read(room)
		},
		"read nothing": func(c net.Conn, _ *net.TCPConn) (int, error) { return c.Read(nil) },
		"read after the end": func(c net.Conn, far *net.TCPConn) (int, error) {
			soon(func() { _ = far.CloseWrite() })
			return c.Read(room)
		},
		"read after a reset": func(c net.Conn, far *net.TCPConn) (int, error) {
			_ = far.SetLinger(0)
			soon(func() { _ = far.Close() })
			return c.Read(room)
		},
		"read until late": func(c net.Conn, _ *net.TCPConn) (int, error) {
			soon(func() { _ = c.SetReadDeadline(time.Now()) })
			return c.Read(room)
		},
		"read too late": func(c net.Conn, far *net.TCPConn) (int, error) {
			_, _ = far.Write(some)
			_ = c.SetReadDeadline(time.Now())
			return c.Read(room)
		},
		"read until closed": func(c net.Conn, _ *net.TCPConn) (int, error) {
			soon(func() { _ = c.Close() })
			return c.Read(room)
		},
		"write until late": func(c net.Conn, _ *net.TCPConn) (int, error) {
			soon(func() { _ = c.SetWriteDeadline(time.Now()) })
			return c.Write(much)
		},
		"write too late": func(c net.Conn, _ *net.TCPConn) (int, error) {
			_ = c.SetWriteDeadline(time.Now())
			return c.Write(some)
		},
		"write until closed": func(c net.Conn, _ *net.TCPConn) (int, error) {
			soon(func() { _ = c.Close() })
			return c.Write(much)
		},
		"write until reset": func(c net.Conn, far *net.TCPConn) (int, error) {
			_ = far.SetLinger(0)
			soon(func() { _ = far.Close() })
			return c.Write(much)
		},
		"write after a reset": func(c net.Conn, far *net.TCPConn) (int, error) {
			_ = far.SetLinger(0)
			_ = far.Close()
			_, _ = c.Read(room)
			return c.Write(some)
		},
	} {
		t.Run(name, func(t *testing.T) {
			near, far := pair(t)
			want := of(play(near, far))
			near, far = pair(t)
			require.Equal(t, want, of(play(rawcall.Conn(near), far)))
		})
	}
}

func TestAllArrivesInOrder(t *testing.T) {
	near, far := pair(t)
	sent := bytes.Repeat([]byte("0123456789abcde"), 1<<20)
	go func() {
		_, _ = rawcall.Conn(near).Write(sent)
		_ = near.CloseWrite()
	}()
	got, err := io.ReadAll(rawcall.Conn(far))
	require.NoError(t, err)
	require.True(t, bytes.Equal(sent, got))
}

func TestTransfersTakeNoMemory(t *testing.T) {
	near, far := pair(t)
	a, b, buf := rawcall.Conn(near), rawcall.Conn(far), make([]byte, 16)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		_, _ = a.Write(some)
		_, _ = b.Read(buf)
	}))
}

// TestWritesAreWhole: what two goroutines write at the same time is not mixed.
func TestWritesAreWhole(t *testing.T) {
	near, far := pair(t)
	require.NoError(t, near.SetWriteBuffer(16<<10))
	c, texts := rawcall.Conn(near), [2]byte{'a', 'b'}
	var writers sync.WaitGroup
	for _, text := range texts {
		writers.Go(func() {
			_, err := c.Write(bytes.Repeat([]byte{text}, 1<<20))
			assert.NoError(t, err)
		})
	}
	go func() {
		writers.Wait()
		_ = near.CloseWrite()
	}()
	got, err := io.ReadAll(far)
	require.NoError(t, err)
	require.Len(t, got, 2<<20)
	changes := 0
	for i := 1; i < len(got); i++ {
		if got[i] != got[i-1] {
			changes++
		}
	}
	require.Equal(t, 1, changes)
}

// What is not of TCP stays what it is.
func TestOtherConnectionsStay(t *testing.T) {
	near, far := net.Pipe()
	defer func() { _, _ = near.Close(), far.Close() }()
	require.Same(t, near, rawcall.Conn(near))
}
