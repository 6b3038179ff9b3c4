package netmesh

import (
	"net"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/internal/memnet"
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

// TestALinkThatComesAndGoesIsDialedEverMoreRarely, also if its evidence connection ends with it.
func TestALinkThatComesAndGoesIsDialedEverMoreRarely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := memnet.New()
		a, b := start(t, "a", onHost(net)), start(t, "b", onHost(net, func(c *Config) {
			c.times.redialMin, c.times.redialMax = 100*time.Millisecond, time.Second
		}))
		b.AddPeer("a", a.cfg.Bind)
		for range 10 * time.Second / time.Millisecond {
			time.Sleep(time.Millisecond)
			if a.stands("b") && b.up() == 1 {
				b.resetLink("a")
			}
		}
		require.LessOrEqual(t, b.count("a", "up 1"), 25, "a pause is half a second and more")
		require.Greater(t, b.count("a", "up 1"), 5)
	})
}
