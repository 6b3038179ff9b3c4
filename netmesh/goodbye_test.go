package netmesh

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bmqelect/bmqelect/internal/memnet"
	"github.com/stretchr/testify/require"
)

// TestGoodbyeIsHeardWheneverItIsSaid: two members dial each other, and one leaves at each moment of
// their handshakes. If the other has a link by then it hears a goodbye, even while one of the two
// connections is about to replace the other.
func TestGoodbyeIsHeardWheneverItIsSaid(t *testing.T) {
	const latency = 10 * time.Millisecond
	across := map[nodeID]nodeID{"a": "b", "b": "a"}
	for leaver := range across {
		linked := 0
		for moment := time.Duration(0); moment < 12*latency; moment += latency / 2 {
			virtual(t, func(t *testing.T, net *memnet.Network) {
				net.Delay(func(string, string) time.Duration { return latency },
					func() time.Duration { return 0 })
				nodes := map[nodeID]*node{"a": start(t, "a", onHost(net)), "b": start(t, "b", onHost(net))}
				nodes["b"].AddPeer("a", "a:7000")
				time.Sleep(latency / 2)
				nodes["a"].AddPeer("b", "b:7000")
				time.Sleep(moment)
				nodes[leaver].close(t)
				time.Sleep(time.Second)
				heard := nodes[across[leaver]].all(leaver)
				if len(heard) == 0 {
					return
				}
				linked++
				require.Equal(t, "down goodbye", last(heard, 1)[0], "%s leaves after %s: %v", leaver, moment,
					heard)
				require.NotContains(t, heard, "down reset")
			})
		}
		require.Greater(t, linked, 12)
	}
}

// TestGoodbyeIsSaidByABusyMachine: the link's writer does not run for a while.
func TestGoodbyeIsSaidByABusyMachine(t *testing.T) {
	virtual(t, func(t *testing.T, net *memnet.Network) {
		a := start(t, "a", onHost(net))
		ln, err := net.Host("b").Listen("b:7000")
		require.NoError(t, err)
		defer func() { require.NoError(t, ln.Close()) }()
		var said error
		go func() {
			conn, err := net.Host("x").Dial(t.Context(), "b:7000")
			require.NoError(t, err)
			s := &stranger{shake(t, conn, a, time.Hour), t}
			s.link(helloFrom(a))
			for kind := frameKind(0); kind != frameGoodbye && said == nil; {
				kind, _, said = s.frames.next()
			}
			_ = conn.Close()
		}()
		conn, err := ln.Accept()
		require.NoError(t, err)
		l, err := a.welcome(newHandshake(conn, time.Hour))
		require.NoError(t, err)
		a.Disconnect("x", "test")
		time.Sleep(2 * goodbyeTime)
		l.run()
		synctest.Wait()
		require.NoError(t, said)
		require.Equal(t, []string{"up 1", "down local"}, a.all("x"))
	})
}

// brief leaves as soon as it has a link.
type brief struct {
	*recorder
	m atomic.Pointer[Mesh]
}

func (b *brief) LinkUp(p PeerInfo) {
	b.recorder.LinkUp(p)
	go func() { _ = b.m.Load().Close(context.Background()) }()
	time.Sleep(time.Millisecond) // the dial is under way still
}

func TestGoodbyeIsSaidByWhoLeavesWhileItDials(t *testing.T) {
	virtual(t, func(t *testing.T, net *memnet.Network) {
		a, b := start(t, "a", onHost(net)), &brief{recorder: &recorder{}}
		cfg := testConfig("b")
		onHost(net)(&cfg)
		if a.cfg.TLS != nil {
			encrypted(&cfg)
		}
		m, err := Listen(cfg, b)
		require.NoError(t, err)
		b.m.Store(m)
		m.AddPeer("a", "a:7000")
		time.Sleep(time.Second)
		require.NoError(t, m.Close(t.Context()))
		require.Equal(t, []string{"up 1", "down goodbye"}, a.all("b"))
	})
}
