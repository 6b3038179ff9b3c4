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
	c := guardedBy(t, Config{Hosts: []string{"node1.internal"}}, nil)
	for host, want := range map[string]int{
		"evil.example": 421, "evil.example:7402": 421, "localhost.evil.example": 421, "192.0.2.1": 421,
		"[2001:db8::1]:80":       421,
		"127.0.0.1.evil.example": 421, "localhost": 200, "LOCALHOST:7402": 200, "127.0.0.2:7402": 200,
		"[::1]:7402": 200, "[::1]": 200, "node1.internal:7402": 200, "Node1.Internal": 200,
	} {
		resp, text := exchange(t, c, "GET", "/v1/status", "", "Host", host)
		require.Equal(t, want, resp.StatusCode, "%s: %s", host, text)
	}
	far := guardedBy(t, Config{}, elsewhere)
	code, _ := request(t, far, "GET", "/v1/status", "", "Host", "node1.example")
	require.Equal(t, http.StatusOK, code, "on a network any name is right")
	resp, text := cut(t, c, "Host", "evil.example", "Origin", "http://evil.example", "Sec-Fetch-Site",
		"same-origin")
	require.Equal(t, http.StatusMisdirectedRequest, resp.StatusCode,
		"though it is of one origin to the browser")
	require.Contains(t, text, `for \"evil.example\", but it came over loopback`)
}

func TestHealthChecksNeedNoName(t *testing.T) {
	c := guardedBy(t, Config{}, nil)
	conn, err := net.Dial("tcp", c.addr)
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.Write([]byte("GET /healthz HTTP/1.0\r\n\r\n"))
	require.NoError(t, err)
	answer := make([]byte, 12)
	_, err = conn.Read(answer)
	require.NoError(t, err)
	require.Equal(t, "HTTP/1.0 200", string(answer))
}

func TestAnAddressOfLoopbackIsNoNetwork(t *testing.T) {
	for addr, want := range map[string]int{"127.0.0.1:1": 200, "127.9.9.9:1": 200, "[::1]:1": 200,
		"192.0.2.1:1": 403, "[2001:db8::1]:1": 403, "[::ffff:192.0.2.1]:1": 403} {
		at, err := net.ResolveTCPAddr("tcp", addr)
		require.NoError(t, err)
		resp, _ := cut(t, guardedBy(t, Config{}, at))
		require.Equal(t, want, resp.StatusCode, addr)
	}
}

func TestATokenIsDemandedOfWhoChangesSomething(t *testing.T) {
	for name, at := range map[string]net.Addr{"loopback": nil,
		"socket": &net.UnixAddr{Net: "unix", Name: "/x"}} {
		t.Run(name, func(t *testing.T) {
			c := guardedBy(t, Config{Tokens: tokensOf(t, secret+"\nread "+another)}, at)
			for _, c2 := range []struct {
				header []string
				want   int
			}{
				{nil, 401},
				{[]string{"Authorization", "Bearer " + secret}, 200},
				{[]string{"Authorization", "bearer  " + secret + " "}, 200},
				{[]string{"Authorization", "Bearer " + secret + "x"}, 401},
				{[]string{"Authorization", "Bearer " + secret[:len(secret)-1]}, 401},
				{[]string{"Authorization", "Bearer "}, 401},
				{[]string{"Authorization", "Bearer"}, 401},
				{[]string{"Authorization", "Basic " + secret}, 401},
				{[]string{"Authorization", secret}, 401},
				{[]string{"Authorization", "Bearer operate " + secret}, 401},
			} {
				resp, text := cut(t, c, c2.header...)
				require.Equal(t, c2.want, resp.StatusCode, "%v: %s", c2.header, text)
				require.Equal(t, c2.want == 401, resp.Header.Get("WWW-Authenticate") != "")
				require.NotContains(t, text, secret)
			}
			resp, text := cut(t, c, "Authorization", "Bearer "+another)
			require.Equal(t, http.StatusForbidden, resp.StatusCode)
			require.Contains(t, text, "this needs the role operate, and the token has the role read")
			for _, r := range []string{"POST /v1/nothing", "PUT /v1/status", "DELETE /v1/faults"} {
				method, path, _ := strings.Cut(r, " ")
				code, _ := request(t, c, method, path, "")
				require.Equal(t, http.StatusUnauthorized, code, "not even what there is not")
			}
		})
	}
}

func TestAClientSendsItsToken(t *testing.T) {
	c := guardedBy(t, Config{Tokens: tokensOf(t, secret), TokenReads: true}, nil)
	_, err := c.Status(t.Context())
	require.ErrorContains(t, err, "this needs the node's token")
	_, err = c.Faults(t.Context(), FaultRequest{HealAll: true})
	require.ErrorContains(t, err, "this needs the node's token")
	c.token = "something-else-altogether"
	_, err = c.Faults(t.Context(), FaultRequest{HealAll: true})
	require.ErrorContains(t, err, "the token is not this node's")
	c.token = secret
	_, err = c.Faults(t.Context(), FaultRequest{HealAll: true})
	require.NoError(t, err)
}
