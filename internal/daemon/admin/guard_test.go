package admin

import (
	"net"
	"net/http"
	"strings"
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

// cut is a request that changes something.
func cut(t *testing.T, c *Client, header ...string) (*http.Response, string) {
	return exchange(t, c, "POST", "/v1/faults", `{"cut":["b"]}`, header...)
}

func TestABrowserFromElsewhereCannotDriveIt(t *testing.T) {
	faults := fault.New()
	_, c := serve(t, faults)
	for _, header := range [][2]string{{"Origin", "https://evil.example"}, {"Origin", "null"},
		{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}} {
		resp, text := cut(t, c, header[0], header[1])
		require.Equal(t, http.StatusForbidden, resp.StatusCode, header)
		require.Contains(t, text, "page of another origin", header)
	}
	require.Equal(t, "none", faults.String())
	resp, _ := exchange(t, c, "GET", "/v1/status", "", "Origin", "https://evil.example")
	require.Empty(t, resp.Header.Get("Access-Control-Allow-Origin"), "its page cannot read the answer")
}

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
	resp, text := cut(t, guardedBy(t, Config{}, nil), "Host", "evil.example",
		"Origin", "http://evil.example", "Sec-Fetch-Site", "same-origin")
	require.Equal(t, http.StatusMisdirectedRequest, resp.StatusCode,
		"though it is of one origin to the browser")
	require.Contains(t, text, `for \"evil.example\", but it came over loopback`)
	for _, at := range []net.Addr{elsewhere, socketAddr} {
		far := guardedBy(t, Config{}, at)
		code, _ := request(t, far, "GET", "/v1/status", "", "Host", "node1.example")
		require.Equal(t, http.StatusOK, code, "on a network any name is right")
	}
}

func TestATokenIsDemandedOfWhoChangesSomething(t *testing.T) {
	c := guardedBy(t, Config{Tokens: tokensOf(t, secret+"\nread "+another)}, nil)
	for header, want := range map[string]int{
		"": 401, "Bearer " + secret: 200, "bearer  " + secret + " ": 200, "Bearer " + secret + "x": 401,
		"Bearer " + secret[:len(secret)-1]: 401, "Bearer ": 401, "Bearer": 401, "Basic " + secret: 401,
		secret: 401, "Bearer operate " + secret: 401, "Bearer " + another: 403,
	} {
		resp, text := cut(t, c, "Authorization", header)
		require.Equal(t, want, resp.StatusCode, "%v: %s", header, text)
		require.Equal(t, want == 401, resp.Header.Get("WWW-Authenticate") != "")
		require.NotContains(t, text, secret)
	}
	for _, r := range []string{"POST /v1/nothing", "PUT /v1/status", "DELETE /v1/faults"} {
		method, path, _ := strings.Cut(r, " ")
		code, _ := request(t, c, method, path, "")
		require.Equal(t, http.StatusUnauthorized, code, "not even what there is not")
	}
	_, err := c.Status(t.Context())
	require.NoError(t, err, "nor of who reads")
	c.token = "something-else-altogether"
	_, err = c.Tell(t.Context(), FaultRequest{HealAll: true})
	require.ErrorContains(t, err, "the token is not this node's", "the client sends it")
}
