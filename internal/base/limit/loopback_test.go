package limit

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhatIsLoopback(t *testing.T) {
	for addr, want := range map[string]bool{
		"127.0.0.1:1": true, "127.9.9.9:1": true, "[::1]:1": true, "localhost:1": true,
		"[::ffff:127.0.0.1]:1": true, "0.0.0.0:1": false, "[::]:1": false, ":1": false, "": false,
		"192.0.2.1:1": false, "localhost.example:1": false, "127.0.0.1": false, "2130706433:1": false,
	} {
		require.Equal(t, want, IsLoopback(addr), addr)
	}
}

// ends are those of a connection.
type ends struct {
	net.Conn
	local, remote net.Addr
}

func (e ends) LocalAddr() net.Addr  { return e.local }
func (e ends) RemoteAddr() net.Addr { return e.remote }

func TestBothEndsAreOnLoopback(t *testing.T) {
	here, there := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}, &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1)}
	require.True(t, OnLoopback(ends{nil, here, &net.TCPAddr{IP: net.IPv6loopback}}))
	require.False(t, OnLoopback(ends{nil, here, there}))
	require.False(t, OnLoopback(ends{nil, there, here}))
	require.False(t, OnLoopback(ends{nil, here, &net.UnixAddr{}}))
}
