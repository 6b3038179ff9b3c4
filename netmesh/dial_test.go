package netmesh

import (
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestADialThatIsToProveADeathFirstWaits for the listener of a dying process to go away.
func TestADialThatIsToProveADeathFirstWaits(t *testing.T) {
	for name, c := range map[string]struct {
		other func(net.Conn)
		check func(error)
	}{
		"a process that lives": {func(net.Conn) {}, func(err error) { require.NoError(t, err) }},
		"one that dies":        {reset, func(err error) { require.ErrorIs(t, err, syscall.ECONNRESET) }},
		"one that speaks first": {func(c net.Conn) { _, _ = c.Write([]byte("220 mail\r\n")) },
			func(err error) { require.ErrorContains(t, err, "before it is asked") }},
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		conn, err := net.Dial("tcp", l.Addr().String())
		require.NoError(t, err)
		accepted, err := l.Accept()
		require.NoError(t, err)
		c.other(accepted)
		time.Sleep(time.Millisecond) // loopback is faster
		t.Log(name)
		c.check(standing(conn))
		reset(conn)
		reset(accepted)
		require.NoError(t, l.Close())
	}
}
