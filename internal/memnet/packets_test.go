package memnet

import (
	"net"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// sockets returns a socket of host a, and one of host b at b:7.
func sockets(t *testing.T, n *Network) (a, b net.PacketConn) {
	a, err := n.Host("a").ListenPacket("a:0")
	require.NoError(t, err)
	b, err = n.Host("b").ListenPacket("b:7")
	require.NoError(t, err)
	return a, b
}

func post(t *testing.T, from net.PacketConn, text string) {
	t.Helper()
	_, err := from.WriteTo([]byte(text), addr("b:7"))
	require.NoError(t, err)
}

// read returns what arrives next.
func read(t *testing.T, at net.PacketConn) string {
	t.Helper()
	text := make([]byte, 9)
	n, from, err := at.ReadFrom(text)
	require.NoError(t, err)
	require.Contains(t, from.String(), "a:")
	return string(text[:n])
}

func TestDatagramsAreLost(t *testing.T) {
	n := New()
	a, b := sockets(t, n)
	for text, spoil := range map[string]func(){
		"dropped":  func() { n.Filter("a", "b", Drop) },
		"rejected": func() { n.Filter("a", "b", Reject) },
		"lost":     func() { n.Lose(func(from, to string) bool { return from == "a" && to == "b" }) },
	} {
		spoil()
		post(t, a, text)
		n.Filter("a", "b", Pass)
		n.Lose(nil)
	}
	_, err := a.WriteTo([]byte("nobody listens"), addr("b:8"))
	require.NoError(t, err)
	_, err = a.WriteTo(nil, addr("b"))
	require.Error(t, err)
	for range packetRoom + 1 {
		post(t, a, "a datagram")
	}
	for range packetRoom {
		require.Equal(t, "a datagra", read(t, b))
	}
	post(t, a, "last")
	require.Equal(t, "last", read(t, b), "the socket had no room for one more")
}

func TestDatagramsOvertakeEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New()
		slow := 4 * time.Second
		n.Delay(func(string, string) time.Duration { slow /= 2; return slow }, nil)
		a, b := sockets(t, n)
		began := time.Now()
		post(t, a, "one")
		post(t, a, "two")
		require.Equal(t, "two", read(t, b))
		require.Equal(t, "one", read(t, b))
		require.Equal(t, 2*time.Second, time.Since(began))
	})
}

func TestSocketsForDatagramsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New()
		a, b := sockets(t, n)
		_, err := n.Host("b").ListenPacket("b:7")
		require.ErrorIs(t, err, syscall.EADDRINUSE)
		_, err = n.Host("b").ListenPacket("b")
		require.Error(t, err)

		process := n.Host("b")
		process.Stop()
		post(t, a, "waits")
		_, err = b.WriteTo([]byte("lost"), a.LocalAddr())
		require.NoError(t, err)
		got := make(chan string, 1)
		go func() { got <- read(t, b) }()
		synctest.Wait()
		require.Empty(t, got)
		process.Continue()
		require.Equal(t, "waits", <-got)
		require.Empty(t, a.(*packets).came, "a stopped process sends nothing")

		n.Kill("b")
		_, _, err = b.ReadFrom(make([]byte, 1))
		require.ErrorIs(t, err, net.ErrClosed)
		require.NoError(t, b.Close(), "again")
		_, err = process.ListenPacket("b:7")
		require.ErrorIs(t, err, net.ErrClosed, "the process is dead")
		_, err = n.Host("b").ListenPacket(b.LocalAddr().String())
		require.NoError(t, err, "the next process has the port")
		require.NoError(t, a.Close())
		_, err = a.WriteTo([]byte("x"), addr("b:7"))
		require.ErrorIs(t, err, net.ErrClosed)
	})
}
