package memnet

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// connect returns both ends of a connection from host a to host b.
func connect(t *testing.T, n *Network) (near, far net.Conn) {
	t.Helper()
	l, err := n.Host("b").Listen("b:0")
	require.NoError(t, err)
	near, err = n.Host("a").Dial(context.Background(), l.Addr().String())
	require.NoError(t, err)
	far, err = l.Accept()
	require.NoError(t, err)
	return near, far
}

func readErr(c net.Conn) error {
	_, err := c.Read(make([]byte, 8))
	return err
}

func TestDataArrivesInOrderBeforeTheEnd(t *testing.T) {
	near, far := connect(t, New())
	for _, s := range []string{"one ", "two ", "three"} {
		_, err := near.Write([]byte(s))
		require.NoError(t, err)
	}
	require.NoError(t, near.Close())
	got, err := io.ReadAll(far)
	require.NoError(t, err)
	require.Equal(t, "one two three", string(got))
	require.ErrorIs(t, readErr(near), net.ErrClosed)
	_, err = far.Write([]byte("x"))
	require.NoError(t, err, "nobody reads it, but that shows later")
	_, err = far.Write([]byte("x"))
	require.ErrorIs(t, err, syscall.ECONNRESET)
	require.Equal(t, io.EOF, readErr(far), "the end had come before the reset")
}

func TestHalfClose(t *testing.T) {
	near, far := connect(t, New())
	require.NoError(t, near.(*Conn).CloseWrite())
	require.Equal(t, io.EOF, readErr(far))
	_, err := far.Write([]byte("still"))
	require.NoError(t, err)
	require.NoError(t, readErr(near))
}

func TestLingerZeroResets(t *testing.T) {
	near, far := connect(t, New())
	_, err := near.Write([]byte("lost"))
	require.NoError(t, err)
	require.NoError(t, near.(*Conn).SetLinger(0))
	require.NoError(t, near.Close())
	require.ErrorIs(t, readErr(far), syscall.ECONNRESET)
}

// TestOneCallAloneHasTheErrorOfAReset, in this network as in the kernel: reads after the
// first call return an end of stream.
func TestOneCallAloneHasTheErrorOfAReset(t *testing.T) {
	for name, link := range map[string]func(*testing.T) (near, far net.Conn){
		"memory": func(t *testing.T) (net.Conn, net.Conn) { return connect(t, New()) },
		"kernel": loopback,
	} {
		for _, writeFirst := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, write first %t", name, writeFirst), func(t *testing.T) {
				near, far := link(t)
				require.NoError(t, near.(interface{ SetLinger(int) error }).SetLinger(0))
				require.NoError(t, near.Close())
				var err error
				for writeFirst && err == nil { // until the reset is there
					_, err = far.Write([]byte("x"))
				}
				if !writeFirst {
					err = readErr(far)
				}
				require.ErrorIs(t, err, syscall.ECONNRESET)
				require.Equal(t, io.EOF, readErr(far))
				_, err = far.Write([]byte("x"))
				require.ErrorIs(t, err, syscall.EPIPE)
			})
		}
	}
}

func loopback(t *testing.T) (near, far net.Conn) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	near, err = net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	far, err = l.Accept()
	require.NoError(t, err)
	t.Cleanup(func() { _ = far.Close() })
	return near, far
}

func TestCloseWithUnreadDataResets(t *testing.T) {
	near, far := connect(t, New())
	_, err := near.Write([]byte("unread"))
	require.NoError(t, err)
	require.NoError(t, far.Close())
	require.ErrorIs(t, readErr(near), syscall.ECONNRESET)
}

func TestDialWhereNobodyListensIsRefused(t *testing.T) {
	n := New()
	_, err := n.Host("a").Dial(context.Background(), "b:1")
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	l, err := n.Host("b").Listen("b:1")
	require.NoError(t, err)
	_, err = n.Host("b").Listen("b:1")
	require.ErrorIs(t, err, syscall.EADDRINUSE)
	waiting, err := n.Host("a").Dial(context.Background(), "b:1")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	require.ErrorIs(t, readErr(waiting), syscall.ECONNRESET)
	_, err = n.Host("a").Dial(context.Background(), "b:1")
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	_, err = l.Accept()
	require.ErrorIs(t, err, net.ErrClosed)
}

func TestKillEndsAProcessAsItsKernelDoes(t *testing.T) {
	n := New()
	near, far := connect(t, n)
	b := n.Host("b")
	n.Kill("b")

	require.Equal(t, io.EOF, readErr(near))
	require.ErrorIs(t, readErr(far), net.ErrClosed)
	_, err := n.Host("a").Dial(context.Background(), far.LocalAddr().String())
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	_, err = b.Dial(context.Background(), "a:1")
	require.ErrorIs(t, err, net.ErrClosed, "the dead process reaches nobody")
	_, err = b.Listen("b:1")
	require.ErrorIs(t, err, net.ErrClosed)
	_, err = n.Host("b").Listen(far.LocalAddr().String())
	require.NoError(t, err, "the next process has the port")
}

func TestKillResetsWhatLingersNot(t *testing.T) {
	n := New()
	near, far := connect(t, n)
	require.NoError(t, far.(*Conn).SetLinger(0))
	n.Kill("b")
	require.ErrorIs(t, readErr(near), syscall.ECONNRESET)
}

func TestDeadlinesFollowVirtualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := connect(t, New())
		began := time.Now()
		require.NoError(t, near.SetReadDeadline(began.Add(time.Hour)))
		require.ErrorIs(t, readErr(near), os.ErrDeadlineExceeded)
		require.Equal(t, time.Hour, time.Since(began))

		require.NoError(t, near.SetReadDeadline(time.Time{}))
		go func() {
			time.Sleep(time.Minute)
			_, _ = far.Write([]byte("late"))
		}()
		require.NoError(t, readErr(near))
	})
}

func TestWriterBlocksUntilSomebodyReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := connect(t, New())
		require.NoError(t, near.SetWriteDeadline(time.Now().Add(time.Second)))
		n, err := near.Write(make([]byte, capacity+1))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.Equal(t, capacity, n)

		require.NoError(t, near.SetWriteDeadline(time.Time{}))
		go func() { _, _ = io.CopyN(io.Discard, far, capacity) }()
		_, err = near.Write([]byte("more"))
		require.NoError(t, err)
	})
}
