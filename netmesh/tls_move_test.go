package netmesh

import (
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
)

// The ways of a node while its cluster moves to TLS.
const (
	plainWay   = "plain"
	acceptsWay = "accepts both"
	demandsWay = "demands TLS"
)

// goes gives a node a way, and returns how to change it between the last two.
func goes(way string) (edit func(*Config), change func(way string)) {
	var plain atomic.Bool
	change = func(way string) { plain.Store(way == acceptsWay) }
	change(way)
	return func(cfg *Config) {
		if way == plainWay {
			return
		}
		c := *credentialsOf(cfg.Node)
		cfg.TLS = func() *Credentials {
			now := c
			now.AcceptPlain = plain.Load()
			return &now
		}
	}, change
}

// linkOf is the link of a node to another.
func (n *node) linkOf(peer elector.NodeID) (found LinkStatus) {
	for _, l := range n.Links() {
		if l.Peer.Node == peer {
			found = l
		}
	}
	return found
}

// TestWaysThatMeet: a link between any two neighbors of the move comes up, with TLS if both
// have it, and with its evidence connection.
func TestWaysThatMeet(t *testing.T) {
	plainOnly(t)
	for _, c := range []struct {
		dials, accepts  string
		link, encrypted bool
	}{
		{plainWay, plainWay, true, false},
		{plainWay, acceptsWay, true, false},
		{acceptsWay, plainWay, true, false},
		{acceptsWay, acceptsWay, true, true},
		{acceptsWay, demandsWay, true, true},
		{demandsWay, acceptsWay, true, true},
		{demandsWay, demandsWay, true, true},
		{plainWay, demandsWay, false, false},
		{demandsWay, plainWay, false, false},
	} {
		t.Run(c.dials+" dials one that "+c.accepts, func(t *testing.T) {
			one, _ := goes(c.dials)
			other, _ := goes(c.accepts)
			a, b := start(t, "a", one), start(t, "b", other)
			a.knows(b)
			if !c.link {
				a.counts(t, ReasonTLS)
				require.Zero(t, a.up()+b.up())
				return
			}
			for _, n := range []*node{a, b} {
				peer := elector.NodeID("a")
				if n == a {
					peer = "b"
				}
				require.Eventually(t, func() bool { return n.linkOf(peer).Evidence }, patience, glance)
				require.Equal(t, c.encrypted, n.linkOf(peer).Encrypted)
			}
			a.AddPeer("b", b.Addr().String())
			require.True(t, a.Send("b", "g", ack(1)))
			b.sees(t, "a", "g HeartbeatAck 1")
			require.NoError(t, b.listener.Close(), "as at the end of its process")
			b.endsAsKernelsEndIt("a")
			a.sees(t, "b", "died refused-after-eof")
		})
	}
}

// endsAsKernelsEndIt ends both connections to a peer by a FIN, as a kernel does for a dead
// process.
func (n *node) endsAsKernelsEndIt(peer elector.NodeID) {
	n.Mesh.mu.RLock()
	defer n.Mesh.mu.RUnlock()
	p := n.peers[peer]
	_ = closeWrite(p.evidence.conn)
	_ = closeWrite(p.link.conn)
}

// TestDemandEndsPlainLinks, and only those.
func TestDemandEndsPlainLinks(t *testing.T) {
	plainOnly(t)
	way, change := goes(acceptsWay)
	other, _ := goes(acceptsWay)
	a, b, c := start(t, "a", way), start(t, "b"), start(t, "c", other)
	a.knows(b, c)
	a.sees(t, "b", "up 1")
	a.sees(t, "c", "up 1")
	change(demandsWay)
	a.sees(t, "b", "down local")
	b.sees(t, "a", "down goodbye")
	require.True(t, a.Send("c", "g", ack(1)))
	c.sees(t, "a", "g HeartbeatAck 1")
	require.Equal(t, []string{"up 1"}, a.all("c"), "that one is encrypted and stays")
	before := a.count("b", "up 1")
	change(acceptsWay)
	require.Eventually(t, func() bool { return a.count("b", "up 1") > before }, patience, glance)
}

// TestAListOfNamesRevokes: a node that is taken off the list of another loses its link, is
// told why, and does not get in again, although its certificate is right. Others stay.
func TestAListOfNamesRevokes(t *testing.T) {
	plainOnly(t)
	var names atomic.Pointer[[]string]
	names.Store(&[]string{"a", "b", "c"})
	listing := func(cfg *Config) {
		c := *credentialsOf(cfg.Node)
		cfg.TLS = func() *Credentials {
			now := c
			now.Names = *names.Load()
			return &now
		}
	}
	other, _ := goes(demandsWay)
	a, b, c := start(t, "a", listing), start(t, "b", other), start(t, "c", other)
	a.knows(b, c)
	a.sees(t, "b", "up 1")
	a.sees(t, "c", "up 1")
	names.Store(&[]string{"a", "c"})
	a.sees(t, "b", "down local")
	b.sees(t, "a", "down goodbye")
	b.knows(a)
	b.counts(t, ReasonTLS)
	require.True(t, a.Send("c", "g", ack(1)))
	c.sees(t, "a", "g HeartbeatAck 1")
	require.Equal(t, []string{"up 1"}, a.all("c"))
	before := a.count("b", "up 1")
	names.Store(&[]string{"a", "b", "c"})
	require.Eventually(t, func() bool { return a.count("b", "up 1") > before }, patience, glance)
}

// TestNodeThatDemandsTLSIsNotTalkedOutOfIt by somebody on the network who answers as a
// member without TLS does. A node that accepts both is: that is what it is told to do.
func TestNodeThatDemandsTLSIsNotTalkedOutOfIt(t *testing.T) {
	plainOnly(t)
	for way, want := range map[string]bool{acceptsWay: true, demandsWay: false} {
		t.Run(way, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			defer func() { _ = l.Close() }()
			edit, _ := goes(way)
			a := start(t, "a", edit)
			a.AddPeer("b", l.Addr().String())
			sawPlain := false
			for range 6 { // connections
				conn, err := l.Accept()
				require.NoError(t, err)
				h := newHandshake(conn, time.Second)
				var first [1]byte
				_, err = conn.Read(first[:])
				require.NoError(t, err)
				sawPlain = sawPlain || first[0] == firstOfFrame
				h.closeWith(frameRefuse, refuse(ReasonTLS, "none here").goodbye())
			}
			require.Equal(t, want, sawPlain)
		})
	}
}
