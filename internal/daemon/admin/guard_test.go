package admin

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/netmesh/fault"
)

const secret, another = "correct-horse-battery-staple", "another-horse-of-another-color"

// guardedBy serves a node with faults behind a given configuration; the connections
// seem to be at the given kind of address.
func guardedBy(t *testing.T, cfg Config, at net.Addr) *Client {
	ln := listen(t)
	cfg.Faults = fault.New()
	cfg.Node = start(t, t.TempDir(), ln, cfg.Faults, "b", "c") // nobody leads
	return open(t, cfg, seemsAt{ln, at})
}

// seemsAt is a listener on loopback whose connections claim to be at another address.
type seemsAt struct {
	net.Listener
	addr net.Addr
}

func (s seemsAt) Accept() (net.Conn, error) {
	conn, err := s.Listener.Accept()
	if err != nil || s.addr == nil {
		return conn, err
	}
	return seeming{conn, s.addr}, nil
}

type seeming struct {
	net.Conn
	addr net.Addr
}

func (s seeming) LocalAddr() net.Addr  { return s.addr }
func (s seeming) RemoteAddr() net.Addr { return s.addr }

var (
	elsewhere  = &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 7402}
	socketAddr = &net.UnixAddr{Net: "unix", Name: "/x"}
)

// TestANameThatWasMadeToPointHereIsRefused: DNS rebinding.
func TestANameThatWasMadeToPointHereIsRefused(t *testing.T) {
	s := &Server{Config: Config{Hosts: []string{"node1.internal"}}}
	for host, own := range map[string]bool{
		"evil.example": false, "evil.example:7402": false, "localhost.evil.example": false,
		"192.0.2.1": false, "[2001:db8::1]:80": false, "127.0.0.1.evil.example": false,
		"localhost": true, "LOCALHOST:7402": true, "127.0.0.2:7402": true, "[::1]:7402": true,
		"[::1]": true, "node1.internal:7402": true, "Node1.Internal": true, "": true,
	} {
		require.Equal(t, own, s.isOwnHost(host), host)
	}
}

func TestAClientSendsItsToken(t *testing.T) {
	c := guardedBy(t, Config{Tokens: tokensOf(t, secret)}, nil)
	for token, want := range map[string]string{
		"": "this needs the node's token", "something-else-altogether": "the token is not this node's",
		secret: "",
	} {
		c.token = token
		if _, err := c.Tell(t.Context(), FaultRequest{HealAll: true}); want != "" {
			require.ErrorContains(t, err, want)
		} else {
			require.NoError(t, err)
		}
	}
}
