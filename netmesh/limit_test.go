package netmesh

import (
	"context"
	"errors"
	"net"
	"os"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/internal/memnet"
)

// starved is the network of a process that gets a processor once in a while: it takes so long
// until it has what came.
type starved struct {
	Network
	every            time.Duration
	dialed, accepted atomic.Int64
}

type starvedListener struct {
	net.Listener
	on *starved
}

type starvedConn struct {
	*memnet.Conn
	every time.Duration
}

func (s *starved) Listen(addr string) (net.Listener, error) {
	l, err := s.Network.Listen(addr)
	return starvedListener{l, s}, err
}

func (s *starved) Dial(ctx context.Context, addr string) (net.Conn, error) {
	s.dialed.Add(1)
	conn, err := s.Network.Dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	return starvedConn{conn.(*memnet.Conn), s.every}, nil
}

func (l starvedListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.on.accepted.Add(1)
	return starvedConn{conn.(*memnet.Conn), l.on.every}, nil
}

func (c starvedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	time.Sleep(c.every)
	return n, err
}

// starvePair starts two nodes, of which b has little of its processor.
func starvePair(t *testing.T, every time.Duration, edit func(*Config)) (a, b *node, s *starved) {
	hasty := func(c *Config) { c.times.handshake = 100 * time.Millisecond }
	network := memnet.New()
	a = start(t, "a", onHost(network, hasty, edit))
	s = &starved{every: every}
	b = start(t, "b", onHost(network, hasty, edit, func(c *Config) {
		s.Network = c.Network
		c.Network = s
	}))
	return a, b, s
}

// TestWhoHasLittleProcessorStillGetsALink, and its death can be proven: whoever dials, and each of
// its steps takes longer than a handshake has at first.
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
				synctest.Test(t, func(t *testing.T) {
					a, b, _ := starvePair(t, 150*time.Millisecond, edit)
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

// TestWhoDoesNotAnswerIsDialedEverMoreRarely, so that what processor it gets is not spent on
// handshakes that were given up.
func TestWhoDoesNotAnswerIsDialedEverMoreRarely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _, s := starvePair(t, 5*time.Second, func(*Config) {})
		a.AddPeer("b", "b:7000")
		time.Sleep(time.Minute)
		first := s.accepted.Load()
		require.LessOrEqual(t, first, int64(30), "with 100 ms each they were 300")
		time.Sleep(time.Minute)
		require.LessOrEqual(t, s.accepted.Load()-first, int64(30))
		require.Positive(t, s.accepted.Load()-first)
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
