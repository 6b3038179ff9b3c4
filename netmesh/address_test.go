package netmesh

import (
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bmqelect/bmqelect/internal/memnet"
	"github.com/stretchr/testify/require"
)

// forwarder is a TCP proxy.
type forwarder struct {
	net.Listener
	dial func() (net.Conn, error)
	work sync.WaitGroup

	mu    sync.Mutex
	conns []net.Conn // both sides of all that were made
}

// forward starts a proxy on loopback and returns its address.
func forward(t *testing.T, target string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	forwardFrom(t, l, func() (net.Conn, error) { return net.Dial("tcp", target) })
	return l.Addr().String()
}

func forwardFrom(t *testing.T, l net.Listener, dial func() (net.Conn, error)) {
	f := &forwarder{Listener: l, dial: dial}
	f.work.Go(f.serve)
	t.Cleanup(f.end)
}

func (f *forwarder) end() {
	_ = f.Close()
	f.mu.Lock()
	for _, c := range f.conns {
		_ = c.Close()
	}
	f.mu.Unlock()
	f.work.Wait()
}

func (f *forwarder) serve() {
	for {
		in, err := f.Accept()
		if err != nil {
			return
		}
		out, err := f.dial()
		if err != nil {
			_ = in.Close()
			continue
		}
		f.mu.Lock()
		f.conns = append(f.conns, in, out)
		f.mu.Unlock()
		f.work.Go(func() { pump(in, out) })
		f.work.Go(func() { pump(out, in) })
	}
}

// pump copies in one direction until that ends, and then ends both.
func pump(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	_ = to.Close()
	_ = from.Close()
}

// TestProxyIsSeenByBothEnds: an end of stream and a refused dial may be the proxy's, and prove
// nothing.
func TestProxyIsSeenByBothEnds(t *testing.T) {
	a, b := start(t, "a"), start(t, "b")
	a.AddPeer("b", forward(t, b.Addr().String()))
	a.observes(t, "b refused proxied", "sees the other at")
	b.observes(t, "a refused proxied", "sees the other at")
	require.True(t, a.Links()[0].Up)
	require.False(t, a.trustsTheEndOf("b"))
}

// TestPlainConnectionsHaveNoProxy in any of the ways in which a node may listen.
func TestPlainConnectionsHaveNoProxy(t *testing.T) {
	for name, c := range map[string]struct{ bind, host string }{
		"loopback":             {"127.0.0.1:0", "127.0.0.1"},
		"every IPv4 address":   {"0.0.0.0:0", "127.0.0.1"},
		"another loopback":     {"0.0.0.0:0", "127.0.0.9"},
		"every address":        {":0", "127.0.0.1"},
		"every address, by v6": {":0", "::1"},
		"mapped":               {":0", "::ffff:127.0.0.1"},
		"IPv6":                 {"[::1]:0", "::1"},
		"by name":              {"127.0.0.1:0", "localhost"},
		"unspecified":          {"0.0.0.0:0", "0.0.0.0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if l, err := net.Listen("tcp", net.JoinHostPort("::1", "0")); err == nil {
				_ = l.Close()
			} else if name == "IPv6" || name == "every address, by v6" {
				t.Skip("no IPv6 here: ", err)
			}
			a, b := start(t, "a"), start(t, "b", func(c2 *Config) { c2.Bind = c.bind })
			_, port, err := net.SplitHostPort(b.Addr().String())
			require.NoError(t, err)
			a.AddPeer("b", net.JoinHostPort(c.host, port))
			for _, n := range []*node{a, b} {
				until(t, func() bool { l := n.Links(); return len(l) > 0 && l[0].FramesIn >= 4 })
				until(t, func() bool { return n.trustsTheEndOf(n.Links()[0].Peer.Node) })
			}
		})
	}
}

func TestEndsAreComparedAsKernelsNameThem(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"10.0.0.1:7", "10.0.0.1:7", true},
		{"10.0.0.1:7", "[::ffff:10.0.0.1]:7", true},
		{"[fe80::1%eth0]:7", "[fe80::1%ens3]:7", true},
		{"10.0.0.1:7", "10.0.0.1:8", false},
		{"10.0.0.1:7", "10.0.0.2:7", false},
		{"[::1]:7", "127.0.0.1:7", false},
		{"pipe", "10.0.0.2:7", true},
		{"a:7000", "b:7000", true},
	} {
		require.Equal(t, c.same, sameEnd(c.a, c.b), "%s and %s", c.a, c.b)
		require.Equal(t, c.same, sameEnd(c.b, c.a), "%s and %s", c.b, c.a)
	}
}

// TestEvidenceOnAnotherPathThanItsLinkIsRefused by the dialer, too: the acceptor may have its
// proofs switched off.
func TestEvidenceOnAnotherPathThanItsLinkIsRefused(t *testing.T) {
	a := start(t, "a")
	b := start(t, "b", func(c *Config) { c.DeathProof.Off = true })
	a.knows(b)
	until(t, func() bool { return a.evidenceTo("b") != nil })
	_, err := a.linkTo("b").dialEvidence(forward(t, b.Addr().String()))
	require.ErrorContains(t, err, "one end of the evidence connection")
	require.True(t, a.observed("b refused proxied", "evidence connection"))
}

// advertises makes a node tell an address.
func advertises(addr string) func(*Config) { return func(c *Config) { c.Advertise = addr } }

// TestAddressThatRefusesTheLivingProvesNoDeath: b dials a, but a finds nobody, or another node, at
// the address that b tells.
func TestAddressThatRefusesTheLivingProvesNoDeath(t *testing.T) {
	for name, address := range map[string]string{
		"nobody": "b:7999", "another node": "c:7000", "a node of the same name": "z:7000",
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(t *testing.T, net *memnet.Network) {
				a, b := start(t, "a", onHost(net)), start(t, "b", onHost(net, advertises(address)))
				c := start(t, "c", onHost(net))
				start(t, "b", at(net, "z"), other)
				b.AddPeer("a", "a:7000")
				synctest.Wait()
				require.False(t, a.trustsTheEndOf("b"))
				time.Sleep(10 * time.Second)
				require.False(t, a.trustsTheEndOf("b"))
				require.NotNil(t, a.evidenceTo("b"))
				require.Empty(t, c.Links(), "asking makes no link")
				net.Kill("b")
				time.Sleep(time.Minute)
				require.Zero(t, a.count("b", "died refused-after-eof"))
			})
		})
	}
}

// TestNodeThatWasDialedBeforeItListened, as when a cluster starts.
func TestNodeThatWasDialedBeforeItListened(t *testing.T) {
	virtual(t, func(t *testing.T, net *memnet.Network) {
		a := start(t, "a", onHost(net))
		a.AddPeer("b", "b:7000")
		time.Sleep(time.Minute)
		require.Contains(t, a.Links()[0].LastErr, "refused")
		b := start(t, "b", onHost(net))
		b.AddPeer("a", "a:7000")
		time.Sleep(time.Minute)
		require.True(t, a.trustsTheEndOf("b"))
		require.True(t, b.trustsTheEndOf("a"))
		require.Empty(t, a.Counters())
		require.Empty(t, b.Counters(), "whoever only asks is no stranger")
		require.Equal(t, []string{"up 1"}, a.all("b"))
	})
}

// TestAddressThatWasConfiguredProvesNothing: only the address that the process itself tells counts.
func TestAddressThatWasConfiguredProvesNothing(t *testing.T) {
	virtual(t, func(t *testing.T, net *memnet.Network) {
		a, b := start(t, "a", onHost(net)), start(t, "b", onHost(net))
		b.AddPeer("a", "a:7000")
		a.AddPeer("b", "b:1")
		time.Sleep(10 * time.Second)
		require.True(t, a.trustsTheEndOf("b"))
		cut(net, "a", "b", memnet.Drop) // the process lives, and b:1 refuses
		time.Sleep(10 * time.Second)
		cut(net, "a", "b", memnet.Pass)
		time.Sleep(10 * time.Second)
		require.Zero(t, a.count("b", "died refused-after-eof"))
	})
}
