package admin

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/testkit"
	"github.com/bmqelect/bmqelect/netmesh/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve runs a real node, the only voter unless more are named, and its admin side.
func serve(t *testing.T, faults *fault.Faults, voters ...cluster.NodeID) (*cluster.Node, *Client) {
	ln := listen(t)
	node := start(t, t.TempDir(), ln, faults, voters...)
	return node, open(t, Config{Node: node, Faults: faults}, ln)
}

// listen listens on a port that the system picks.
func listen(t *testing.T) net.Listener {
	ln, err := Listen("127.0.0.1:0", 0)
	require.NoError(t, err)
	return ln
}

// start starts node a, whose admin side listens on ln; it ends with the test.
func start(t *testing.T, dir string, ln net.Listener, faults *fault.Faults,
	voters ...cluster.NodeID) *cluster.Node {
	return startWith(t, ln, func(c *cluster.Config) {
		c.DataDir, c.Faults, c.Voters = dir, faults, append(voters, "a")
	})
}

// startWith starts node a, the only voter, with another configuration.
func startWith(t *testing.T, ln net.Listener, change func(*cluster.Config)) *cluster.Node {
	t.Helper()
	cfg := cluster.Config{
		Node: "a", Voters: []cluster.NodeID{"a"}, DataDir: t.TempDir(), Meta: "http://a.example",
		GossipAddr: "127.0.0.1:0", MeshAddr: "127.0.0.1:0", AdminAddr: ln.Addr().String(),
	}
	change(&cfg)
	node, err := cluster.Start(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, node.Close(context.Background())) })
	return node
}

// open serves the node on ln until the test ends, and returns a client for it.
func open(t *testing.T, cfg Config, ln net.Listener) *Client {
	server := Serve(cfg, ln)
	addr := cfg.Node.Status().AdminAddr
	if strings.HasPrefix(addr, "/") {
		addr = UnixPrefix + addr
	}
	client := NewClient(addr)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), testkit.Limit(10*time.Second))
		defer cancel()
		require.NoError(t, server.Close(ctx))
	})
	return client
}

func leads(t *testing.T, n *cluster.Node) {
	require.Eventually(t, n.IsLeader, testkit.Limit(10*time.Second), time.Millisecond)
}

// request returns the status code and the body of the answer to a raw request.
func request(t *testing.T, c *Client, method, path, body string, header ...string) (int, string) {
	resp, text := exchange(t, c, method, path, body, header...)
	return resp.StatusCode, text
}

// says checks the status code of the answer to a raw request, and part of its text.
func (c *Client) says(t *testing.T, code int, want, method, path, body string) {
	t.Helper()
	got, text := request(t, c, method, path, body)
	require.Equal(t, code, got, text)
	require.Contains(t, text, want)
}

// exchange sends a raw request.
func exchange(t *testing.T, c *Client, method, path, body string,
	header ...string) (*http.Response, string) {
	req, err := http.NewRequestWithContext(t.Context(), method, c.base+path, strings.NewReader(body))
	require.NoError(t, err)
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	if host := req.Header.Get("Host"); host != "" {
		req.Host = host
	}
	resp, err := c.http.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	record(t, req, resp, text)
	return resp, string(text)
}

func TestStatusIsTheNodes(t *testing.T) {
	node, c := serve(t, nil)
	leads(t, node)
	st, err := c.Status(t.Context())
	require.NoError(t, err)
	want := node.Status()
	require.Equal(t, want.Identity, st.Identity)
	require.Equal(t, want.Groups[0].Term, st.Groups[0].Term)
	require.Equal(t, want.Groups[0].LSN, st.Groups[0].LSN)
	require.True(t, st.Groups[0].Leading)
	require.Equal(t, c.addr, st.AdminAddr)
}

func TestANodeThatEndedIsNeitherHealthyNorReady(t *testing.T) {
	node, c := serve(t, nil)
	require.NoError(t, node.Close(t.Context()))
	c.says(t, http.StatusServiceUnavailable, "", "GET", "/readyz", "")
	c.says(t, http.StatusServiceUnavailable, "", "GET", "/healthz", "")
}

func TestABodyIsBounded(t *testing.T) {
	_, c := serve(t, nil)
	c.says(t, http.StatusBadRequest, "too large", "POST", "/v1/transfer",
		`{"to":"`+strings.Repeat("x", maxBody)+`"}`)
}

func TestFaultsAreCutAndHealed(t *testing.T) {
	faults := fault.New()
	_, c := serve(t, faults)
	st, err := c.Tell(t.Context(), FaultRequest{Cut: []cluster.NodeID{"b"},
		CutIn: []cluster.NodeID{"c"}})
	require.NoError(t, err)
	require.Equal(t, faults.String(), st.Faults)
	require.True(t, faults.Blocks("b"))
	require.False(t, faults.Blocks("c"), "one way only")
	st, err = c.Tell(t.Context(), FaultRequest{HealAll: true})
	require.NoError(t, err)
	require.Equal(t, "none", st.Faults)
}
