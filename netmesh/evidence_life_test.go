package netmesh

import (
	"context"
	"errors"
	"io"
	"net"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/memnet"
	"github.com/stretchr/testify/require"
)

// ends notes the connections on which an end of stream was read.
type ends struct {
	eofs     sync.Map
	welcomed atomic.Pointer[func()] // called after each Welcome that was sent
}

func (n *ends) note(c net.Conn) net.Conn {
	t := &tapped{ofTCP: c.(ofTCP)}
	t.read = func(_ []byte, err error) {
		if err == io.EOF {
			n.eofs.Store(t, true)
		}
	}
	t.written = func(b []byte) {
		if welcomed := n.welcomed.Load(); welcomed != nil && frameKind(b[4]) == frameWelcome {
			(*welcomed)()
		}
	}
	return t
}

// TestLivingProcessNeverEndsItsEvidenceByAFIN, whatever it does, on the side that dialed
// and on the one that accepted: §6.8.
func TestLivingProcessNeverEndsItsEvidenceByAFIN(t *testing.T) {
	for name, act := range map[string]func(t *testing.T, it, other *node){
		"close": func(t *testing.T, it, _ *node) { it.close(t) },
		"close without waiting": func(_ *testing.T, it, _ *node) {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			_ = it.Close(ctx)
		},
		"disconnect": func(_ *testing.T, it, other *node) { it.Disconnect(other.cfg.Node, "test") },
		"remove":     func(_ *testing.T, it, other *node) { it.RemovePeer(other.cfg.Node) },
		"reset":      func(_ *testing.T, it, other *node) { it.resetLink(other.cfg.Node) },
		"new connection": func(_ *testing.T, it, other *node) {
			it.knows(other)
			other.knows(it)
			it.Disconnect(other.cfg.Node, "test")
		},
		"superseded": func(t *testing.T, it, other *node) {
			if !it.Links()[0].Dialed {
				it, other = other, it
			}
			require.NoError(t, it.dial(it.peers[other.cfg.Node], other.Addr().String(), false))
		},
		"violation": func(t *testing.T, it, other *node) {
			e := other.evidenceTo(it.cfg.Node)
			_, err := e.conn.Write([]byte{1})
			require.NoError(t, err)
		},
	} {
		for _, dials := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				n := &ends{}
				_, noting := wrapped(n.note)
				other := start(t, "m", noting)
				name := map[bool]nodeID{true: "a", false: "z"}[dials]
				it := start(t, name)
				if dials {
					it.knows(other)
				} else {
					other.knows(it)
				}
				until(t, func() bool {
					return it.evidenceTo("m") != nil && other.evidenceTo(it.cfg.Node) != nil
				})
				e := other.evidenceTo(it.cfg.Node)
				runtime.GC()
				act(t, it, other)
				until(t, func() bool {
					runtime.GC()
					return other.evidenceTo(it.cfg.Node) != e
				})
				_, eof := n.eofs.Load(e.conn)
				require.False(t, eof)
				require.Zero(t, other.count(it.cfg.Node, "died refused-after-eof"))
			})
		}
	}
}

// TestEvidenceHandshakeThatFailsEndsByAReset on both sides: the other side may already take it for
// the evidence connection.
func TestEvidenceHandshakeThatFailsEndsByAReset(t *testing.T) {
	t.Run("dialer", func(t *testing.T) {
		n := &ends{}
		_, noting := wrapped(n.note)
		a, b := start(t, "a"), start(t, "b", noting)
		a.knows(b)
		until(t, func() bool { return a.evidenceTo("b") != nil })
		l := a.linkTo("b")
		l.key = []byte("another's") // b refuses it
		_, err := l.dialEvidence(l.info.Remote)
		require.ErrorContains(t, err, "refused by the peer (already-connected)")
		b.counts(t, reasonAlreadyConnected)
		n.eofs.Range(func(conn, _ any) bool {
			t.Errorf("an end of stream on %v", conn)
			return true
		})
	})
	t.Run("acceptor", func(t *testing.T) {
		a := start(t, "a")
		m := inKernel(t, a)
		e := m.evidence()
		a.RemovePeer("x")
		_, err := e.conn.Read(make([]byte, 1))
		require.Equal(t, elector.EvidenceReset, evidenceOf(err))
		a.sees(t, "x", "down local") // until then it may be welcomed, and reset
		require.Error(t, m.present(m.dial(t)), "its link is gone")
	})
	t.Run("acceptor whose link ends meanwhile", func(t *testing.T) {
		plainOnly(t) // the network here sees frames
		n := &ends{}
		_, noting := wrapped(n.note)
		a := start(t, "a", noting)
		m := inKernel(t, a)
		m.evidence()
		remove := func() { a.RemovePeer("x") }
		n.welcomed.Store(&remove)
		s := m.dial(t)
		require.NoError(t, m.present(s), "as far as the dialer knows it is the evidence connection")
		_, err := s.conn.Read(make([]byte, 1))
		require.Equal(t, elector.EvidenceReset, evidenceOf(err))
	})
}

// TestEvidenceThatNobodyHoldsIsNone: a process does not go on with a connection that its parent
// cannot hold.
func TestEvidenceThatNobodyHoldsIsNone(t *testing.T) {
	a := start(t, "a", func(c *Config) {
		c.DeathProof.Hold = func(net.Conn, []byte) error { return errors.New("the parent is gone") }
	})
	m := inKernel(t, a)
	require.Equal(t, elector.EvidenceReset, evidenceOf(m.present(m.dial(t))))
	require.False(t, a.stands("x"))
}

// TestAProbeIsContentWithTheProcessBehindTheLink, and with no other.
func TestAProbeIsContentWithTheProcessBehindTheLink(t *testing.T) {
	a := start(t, "a")
	m := inKernel(t, a)
	l := a.linkTo("x")
	for name, c := range map[string]struct {
		change func(*hello)
		other  bool
	}{
		"it":                    {func(*hello) {}, false},
		"one that says no more": {func(h *hello) { h.Process = 0 }, false},
		"another start":         {func(h *hello) { h.Boot++ }, true},
		"another directory":     {func(h *hello) { h.Identity = slices.Repeat([]byte{9}, 16) }, true},
		"a twin":                {func(h *hello) { h.Process++ }, true},
	} {
		listener, err := m.network.Listen("127.0.0.1:0")
		require.NoError(t, err)
		w := *m.hello
		w.MinVersion = w.MaxVersion
		c.change(&w)
		answered := make(chan struct{})
		go func() { defer close(answered); (&member{a: a, listener: listener}).answer(&w) }()
		err = (&evidence{l: l, addr: listener.Addr().String()}).probe()
		require.NoError(t, listener.Close())
		<-answered
		if !c.other {
			require.NoError(t, err, name)
		} else {
			require.ErrorContains(t, err, "another process", name)
		}
	}
}

// TestEvidenceOfOthersIsRefused: a process that does not know the key of a link changes nothing.
func TestEvidenceOfOthersIsRefused(t *testing.T) {
	a := start(t, "a", quiet)
	m := inKernel(t, a)
	m.evidence()
	e := a.evidenceTo("x")
	for name, change := range map[string]func(*hello){
		"no key of that link": func(h *hello) { h.Evidence = make([]byte, 16) },
		"a short key":         func(h *hello) { h.Evidence = h.Evidence[:1] },
		"another dial":        func(h *hello) { h.Dial++ },
		"another boot":        func(h *hello) { h.Boot++ },
		"another member":      func(h *hello) { h.Node = "y" },
		"other addresses":     func(h *hello) { h.Local = "10.0.0.1:1" },
	} {
		s, h := m.dial(t), *m.hello
		h.Local, h.Remote = endsOf(s.conn)
		change(&h)
		require.NoError(t, s.send(frameHello, &h))
		require.ErrorContains(t, s.expect(frameWelcome, &hello{}), "refused by the peer", name)
		s.isClosed()
	}
	require.Same(t, e, a.evidenceTo("x"))
	require.True(t, a.observed("x refused proxied", "evidence connection", "10.0.0.1:1"))
	require.Equal(t, []string{"up 1"}, a.all("x"))
}

// TestEvidenceConnectionsDoNotPileUp: a member that makes them all the time has one. The member
// answers no pings, so its link must not time out meanwhile.
func TestEvidenceConnectionsDoNotPileUp(t *testing.T) {
	a := start(t, "a", quiet)
	m := inKernel(t, a)
	first := m.evidence()
	before := runtime.NumGoroutine()
	for range 200 {
		m.evidence()
	}
	first.isClosed()
	until(t, func() bool { return runtime.NumGoroutine() < before+20 })
	require.Equal(t, []string{"up 1"}, a.all("x"))
}

// TestNoEvidenceWithoutResets: where a reset is an ordinary close, as in a network that
// wraps its connections, a living process would look dead.
func TestNoEvidenceWithoutResets(t *testing.T) {
	for _, wraps := range []nodeID{"a", "b"} {
		edits := map[nodeID]func(*Config){"a": func(*Config) {}, "b": func(*Config) {}}
		_, edits[wraps] = wrapped(func(c net.Conn) net.Conn { return struct{ net.Conn }{c} })
		a, b := start(t, "a", edits["a"]), start(t, "b", edits["b"])
		a.knows(b)
		a.sees(t, "b", "up 1")
		time.Sleep(10 * a.cfg.times.redialMin)
		require.False(t, a.Links()[0].Evidence)
		require.False(t, b.Links()[0].Evidence)
	}
}

func TestDataOnAnEvidenceConnectionEndsTheLink(t *testing.T) {
	a := start(t, "a")
	m := inKernel(t, a)
	e := m.evidence()
	e.write(1)
	a.counts(t, ReasonGarbage)
	a.sees(t, "x", "down local")
	e.isClosed()
	m.isClosed()
}

// TestEvidenceComesBack after it broke, as long as the link stands.
func TestEvidenceComesBack(t *testing.T) {
	a, b := start(t, "a"), start(t, "b")
	a.knows(b)
	for range 3 {
		both := func() bool { return a.evidenceTo("b") != nil && b.evidenceTo("a") != nil }
		until(t, both)
		require.NotEmpty(t, a.Links()[0].Evidence)
		e := b.evidenceTo("a")
		reset(e.conn)
		until(t, func() bool { return b.evidenceTo("a") != e })
	}
	require.Equal(t, []string{"up 1"}, a.all("b"))
	require.Equal(t, []string{"up 1"}, b.all("a"))
}

// TestDeathWithPingsUnreadIsProven in the virtual network as in the kernel.
func TestDeathWithPingsUnreadIsProven(t *testing.T) {
	virtual(t, func(t *testing.T, net *memnet.Network) {
		a := start(t, "a", onHost(net))
		b := startWith(t, "b", &recorder{slow: "a", release: make(chan struct{})}, onHost(net))
		a.knows(b)
		time.Sleep(time.Second)
		require.True(t, a.Send("b", "g", ack(1))) // b's reader waits from now on
		time.Sleep(time.Second + a.cfg.times.ping/2)
		net.Kill("b")
		close(b.release)
		time.Sleep(time.Second)
		require.Equal(t, []string{"up 1", "down reset", "died refused-after-eof"}, a.all("b"))
	})
}
