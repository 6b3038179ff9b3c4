package netmesh

import (
	"errors"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/internal/memnet"
)

// starved is a connection of a process that gets little processor time: each read takes so long.
type starved struct {
	*memnet.Conn
	every time.Duration
}

func (c starved) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	time.Sleep(c.every)
	return n, err
}

// starvePair starts two nodes; b gets little processor time.
func starvePair(
	t *testing.T, network *memnet.Network, every time.Duration, edit ...func(*Config),
) (a, b *node, n *through) {
	hasty := func(c *Config) { c.times.handshake = 100 * time.Millisecond }
	edit = append(edit, onHost(network), hasty)
	n, starve := wrapped(func(c net.Conn) net.Conn { return starved{c.(*memnet.Conn), every} })
	return start(t, "a", edit...), start(t, "b", append(edit, starve)...), n
}

// TestWhoHasLittleProcessorStillGetsALink, whoever dials, and its death can be proven. Each of its
// steps takes longer than the first limit for a handshake.
func TestWhoHasLittleProcessorStillGetsALink(t *testing.T) {
	plainAndTLS(t, func(t *testing.T, edit func(*Config)) {
		for name, invite := range map[string]func(a, b *node){
			"it is dialed": func(a, _ *node) { a.AddPeer("b", "b:7000") },
			"it dials":     func(_, b *node) { b.AddPeer("a", "a:7000") },
			"both dial": func(a, b *node) {
				a.AddPeer("b", "b:7000")
				b.AddPeer("a", "a:7000")
			},
		} {
			t.Run(name, func(t *testing.T) {
				virtual(t, func(t *testing.T, net *memnet.Network) {
					a, b, _ := starvePair(t, net, 150*time.Millisecond, edit)
					invite(a, b)
					time.Sleep(10 * time.Second)
					require.Positive(t, a.count("b", "up 1"), a.Links())
					require.Positive(t, b.count("a", "up 1"), b.Links())
					require.True(t, a.Links()[0].Up)
					require.True(t, a.Links()[0].Evidence)
				})
			})
		}
	})
}

// TestWhoDoesNotAnswerIsDialedEverMoreRarely, so that it does not spend its processor time on
// handshakes that the dialer has given up.
func TestWhoDoesNotAnswerIsDialedEverMoreRarely(t *testing.T) {
	virtual(t, func(t *testing.T, net *memnet.Network) {
		a, _, n := starvePair(t, net, 5*time.Second)
		a.AddPeer("b", "b:7000")
		time.Sleep(time.Minute)
		first := n.made.Load()
		require.LessOrEqual(t, first, int64(30), "with 100 ms each they were 300")
		time.Sleep(time.Minute)
		require.LessOrEqual(t, n.made.Load()-first, int64(30))
		require.Positive(t, n.made.Load()-first)
	})
}

// TestALimitFollowsWhatHandshakesTake, up and down.
func TestALimitFollowsWhatHandshakesTake(t *testing.T) {
	p := handshakes{least: 100 * time.Millisecond, most: 2 * time.Second}
	late, refused := os.ErrDeadlineExceeded, errors.New("refused")
	for i, c := range []struct {
		took time.Duration
		err  error
		want time.Duration
	}{
		{0, refused, 100 * time.Millisecond},
		{0, late, 200 * time.Millisecond},
		{0, late, 400 * time.Millisecond},
		{0, refused, 400 * time.Millisecond},
		{300 * time.Millisecond, nil, 1200 * time.Millisecond},
		{0, late, 2 * time.Second},
		{0, late, 2 * time.Second},
		{time.Second, nil, 2 * time.Second},
		{time.Millisecond, nil, 100 * time.Millisecond},
	} {
		p.learn(c.took, c.err)
		require.Equal(t, c.want, p.limit(), i)
	}
}

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
	virtual(t, func(t *testing.T, net *memnet.Network) {
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
