package netmesh

import (
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
)

// The states of a node while its cluster moves to TLS.
const (
	plainWay   = "plain"
	acceptsWay = "accepts both"
	demandsWay = "demands TLS"
)

// goes puts a node into a state.
func goes(way string) func(*Config) {
	return func(cfg *Config) {
		if way == plainWay {
			return
		}
		c := *credentialsOf(cfg.Node)
		c.AcceptPlain = way == acceptsWay
		cfg.TLS = func() *Credentials { return &c }
	}
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

// TestWaysThatMeet: a link comes up between any two states that meet during the move, with TLS if
// both ends have it, and with its evidence connection.
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
			a, b := start(t, "a", goes(c.dials)), start(t, "b", goes(c.accepts))
			a.knows(b)
			if !c.link {
				a.fails(t, "speaks none")
				for _, n := range []*node{a, b} { // both say so
					n.counts(t, ReasonTLS)
					require.Len(t, n.Counters(), 1)
					require.Zero(t, n.up())
				}
				return
			}
			for _, n := range []*node{a, b} {
				peer := elector.NodeID("a")
				if n == a {
					peer = "b"
				}
				until(t, func() bool { return n.linkOf(peer).Evidence })
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

// TestNewCredentialsEndLinks that they would not accept: plain links if they demand TLS, and links
// to a node that is missing in their list of names although its certificate is valid. The node is
// told why, and is not accepted again. Other links stay.
func TestNewCredentialsEndLinks(t *testing.T) {
	plainOnly(t)
	for name, c := range map[string]struct {
		b             string // its way
		before, after func(*Credentials)
	}{
		"TLS is demanded": {plainWay, func(c *Credentials) { c.AcceptPlain = true },
			func(*Credentials) {}},
		"b is taken off the list": {demandsWay, func(c *Credentials) { c.Names = []string{"a", "b", "c"} },
			func(c *Credentials) { c.Names = []string{"a", "c"} }},
	} {
		t.Run(name, func(t *testing.T) {
			var now atomic.Pointer[Credentials]
			shown := func(edit func(*Credentials)) {
				own := *credentialsOf("a")
				edit(&own)
				now.Store(&own)
			}
			shown(c.before)
			a := start(t, "a", func(cfg *Config) { cfg.TLS = now.Load })
			b, c2 := start(t, "b", goes(c.b)), start(t, "c", goes(demandsWay))
			a.knows(b, c2)
			a.sees(t, "b", "up 1")
			a.sees(t, "c", "up 1")
			shown(c.after)
			a.sees(t, "b", "down local")
			b.sees(t, "a", "down goodbye")
			b.knows(a)
			b.counts(t, ReasonTLS)
			require.True(t, a.Send("c", "g", ack(1)))
			c2.sees(t, "a", "g HeartbeatAck 1")
			require.Equal(t, []string{"up 1"}, a.all("c"))
			before := a.count("b", "up 1")
			shown(c.before)
			until(t, func() bool { return a.count("b", "up 1") > before })
		})
	}
}

// TestNodeThatDemandsTLSIsNotTalkedOutOfIt by an attacker on the network who answers like a member
// without TLS. A node that accepts both is, as configured.
func TestNodeThatDemandsTLSIsNotTalkedOutOfIt(t *testing.T) {
	plainOnly(t)
	for way, want := range map[string]bool{acceptsWay: true, demandsWay: false} {
		t.Run(way, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			defer func() { _ = l.Close() }()
			a := start(t, "a", goes(way))
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
