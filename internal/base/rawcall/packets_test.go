package rawcall

import (
	"net"
	"net/netip"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/internal/testkit"
)

func listenPackets(t testing.TB, addr string) *Packets {
	c, err := net.ListenPacket("udp", addr)
	if err != nil {
		t.Skip("this machine lacks the address:", err)
	}
	t.Cleanup(func() { _ = c.Close() })
	p, err := NewPackets(c.(*net.UDPConn))
	require.NoError(t, err)
	return p
}

func (p *Packets) at(t testing.TB, host string) netip.AddrPort {
	local := netip.MustParseAddrPort(p.LocalAddr().String())
	return netip.AddrPortFrom(netip.MustParseAddr(host), local.Port())
}

// Datagrams arrive whatever the kinds of the two sockets, and the kernel says when.
func TestDatagramsArriveWithTheirTime(t *testing.T) {
	for _, tc := range []struct{ from, at, to string }{
		{"127.0.0.1:0", "127.0.0.1:0", "127.0.0.1"},
		{"127.0.0.1:0", ":0", "::ffff:127.0.0.1"},
		{":0", "127.0.0.1:0", "127.0.0.1"},
		{"[::1]:0", "[::1]:0", "::1"},
	} {
		from, at := listenPackets(t, tc.from), listenPackets(t, tc.at)
		s, err := from.To(at.at(t, tc.to))
		require.NoError(t, err)
		b := make([]byte, 4)
		waited := func() bool { // a kernel begins to stamp a moment after it was asked to
			require.NoError(t, s.Send([]byte("some bytes")))
			time.Sleep(20 * time.Millisecond)
			n, stamp, err := at.Receive(b)
			require.NoError(t, err)
			require.Equal(t, "some", string(b[:n]))
			return time.Since(stamp) >= 19*time.Millisecond && time.Since(stamp) < time.Minute
		}
		if runtime.GOOS == "linux" && strconv.IntSize == 64 {
			require.Eventually(t, waited, testkit.Limit(10*time.Second), time.Millisecond)
		}
		require.NoError(t, s.Send(nil))
		n, _, err := at.Receive(b)
		require.NoError(t, err)
		require.Zero(t, n)
	}
}

func TestAClosedSocketEnds(t *testing.T) {
	p := listenPackets(t, "127.0.0.1:0")
	s, err := p.To(p.at(t, "127.0.0.1"))
	require.NoError(t, err)
	ended := make(chan error)
	go func() { _, _, err := p.Receive(make([]byte, 4)); ended <- err }()
	require.NoError(t, p.Close())
	require.ErrorIs(t, <-ended, net.ErrClosed)
	require.ErrorIs(t, s.Send([]byte("x")), net.ErrClosed)
}

func TestASocketOfIPv4SendsToIPv4(t *testing.T) {
	p := listenPackets(t, "127.0.0.1:0")
	s, err := p.To(netip.MustParseAddrPort("[2001:db8::1]:7"))
	if err == nil {
		err = s.Send([]byte("x"))
	}
	require.Error(t, err)
}

// A datagram costs no memory.
func TestDatagramsCostNoMemory(t *testing.T) {
	p := listenPackets(t, "127.0.0.1:0")
	s, err := p.To(p.at(t, "127.0.0.1"))
	require.NoError(t, err)
	b := make([]byte, 100)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if err := s.Send(b); err != nil {
			t.Error(err)
		}
		if _, _, err := p.Receive(b); err != nil {
			t.Error(err)
		}
	}))
}
