package admin

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/netmesh"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve runs a real node, the only voter unless more are named, and its admin side.
func serve(t *testing.T, faults *netmesh.Faults, voters ...cluster.NodeID) (*cluster.Node, *Client) {
	ln, err := Listen("127.0.0.1:0")
	require.NoError(t, err)
	node, err := cluster.Start(t.Context(), cluster.Config{
		Node: "a", Voters: append(voters, "a"), DataDir: t.TempDir(), Faults: faults,
		GossipAddr: "127.0.0.1:0", MeshAddr: "127.0.0.1:0", AdminAddr: ln.Addr().String(),
	})
	require.NoError(t, err)
	server := Serve(ln, node, faults, hclog.NewNullLogger())
	client := NewClient(server.Addr())
	t.Cleanup(func() {
		client.Close()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		require.NoError(t, node.Close(ctx))
		require.NoError(t, server.Close(ctx))
	})
	return node, client
}

func leads(t *testing.T, n *cluster.Node) {
	require.Eventually(t, n.IsLeader, 10*time.Second, time.Millisecond)
}

// request returns the status code and the body of the answer to a raw request.
func request(t *testing.T, c *Client, method, path, body string, header ...string) (int, string) {
	req, err := http.NewRequestWithContext(t.Context(), method, "http://"+c.addr+path, strings.NewReader(body))
	require.NoError(t, err)
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := c.http.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(text)
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

func TestHealthAndReadinessAreTwoThings(t *testing.T) {
	_, c := serve(t, nil, "b", "c") // no quorum here: alive, but without a leader
	code, _ := request(t, c, "GET", "/healthz", "")
	require.Equal(t, http.StatusOK, code)
	code, text := request(t, c, "GET", "/readyz", "")
	require.Equal(t, http.StatusServiceUnavailable, code)
	require.Contains(t, text, "no leader: 2 of 3 voters needed, 1 reachable")

	node, c := serve(t, nil)
	leads(t, node)
	code, _ = request(t, c, "GET", "/readyz", "")
	require.Equal(t, http.StatusOK, code)
	require.NoError(t, node.Close(t.Context()))
	for _, path := range []string{"/healthz", "/readyz"} {
		code, _ = request(t, c, "GET", path, "")
		require.Equal(t, http.StatusServiceUnavailable, code, path)
	}
}

func TestBadRequestsGetProblemsWithTheirCause(t *testing.T) {
	node, c := serve(t, nil)
	leads(t, node)
	for name, r := range map[string]struct {
		method, path, body string
		code               int
		want               string
	}{
		"no JSON":        {"POST", "/v1/transfer", "b", 400, "invalid character"},
		"no body":        {"POST", "/v1/transfer", "", 409, "no follower could take over"},
		"unknown field":  {"POST", "/v1/transfer", `{"target":"b"}`, 400, `unknown field \"target\"`},
		"not a voter":    {"POST", "/v1/transfer", `{"to":"b"}`, 409, `\"b\": not one of the voters`},
		"nobody to lead": {"POST", "/v1/transfer", `{}`, 409, "no follower could take over"},
		"no faults":      {"POST", "/v1/faults", `{"heal_all":true}`, 404, "--faults"},
		"wrong method":   {"GET", "/v1/transfer", "", 405, ""},
		"no such path":   {"GET", "/v2/status", "", 404, ""},
		"huge body":      {"POST", "/v1/transfer", `{"to":"` + strings.Repeat("x", maxBody) + `"}`, 400, "too large"},
	} {
		t.Run(name, func(t *testing.T) {
			code, text := request(t, c, r.method, r.path, r.body)
			require.Equal(t, r.code, code, text)
			require.Contains(t, text, r.want)
		})
	}
	require.True(t, node.IsLeader(), "nothing of this changed anything")
}

func TestABrowserFromElsewhereCannotDriveIt(t *testing.T) {
	node, c := serve(t, netmesh.NewFaults())
	leads(t, node)
	for _, header := range [][2]string{{"Origin", "https://evil.example"}, {"Sec-Fetch-Site", "cross-site"}} {
		code, _ := request(t, c, "POST", "/v1/faults", `{"cut":["b"]}`, header[0], header[1])
		require.Equal(t, http.StatusForbidden, code, header)
	}
	code, text := request(t, c, "GET", "/v1/faults", "")
	require.Equal(t, http.StatusOK, code)
	require.Contains(t, text, "none")
}

func TestFaultsAreCutAndHealed(t *testing.T) {
	faults := netmesh.NewFaults()
	_, c := serve(t, faults)
	st, err := c.Faults(t.Context(), FaultRequest{Cut: []cluster.NodeID{"b"}, CutIn: []cluster.NodeID{"c"}})
	require.NoError(t, err)
	require.Equal(t, faults.String(), st.Faults)
	require.True(t, faults.Blocks("b"))
	require.False(t, faults.Blocks("c"), "one way only")
	st, err = c.Faults(t.Context(), FaultRequest{HealAll: true})
	require.NoError(t, err)
	require.Equal(t, "none", st.Faults)
}

func TestEventsStreamUntilTheNodeEnds(t *testing.T) {
	node, c := serve(t, nil)
	leads(t, node)
	ready, ended := make(chan struct{}), make(chan error, 1)
	var events []Event
	go func() {
		ended <- c.Events(t.Context(), func() { close(ready) }, func(e Event) { events = append(events, e) })
	}()
	<-ready
	require.NoError(t, node.Close(t.Context()))
	require.NoError(t, <-ended, "the stream ends with the node")
	require.Len(t, events, 1)
	require.Equal(t, "STOPPED", events[0].Reason)
	require.Equal(t, "LEADER", events[0].From)
	require.Equal(t, cluster.NodeID("a"), events[0].Node)
}

func TestEventsEndWithTheirReader(t *testing.T) {
	_, c := serve(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	err := c.Events(ctx, cancel, func(Event) {})
	require.ErrorIs(t, err, context.Canceled)
}

func TestListenNamesTheAddress(t *testing.T) {
	_, c := serve(t, nil)
	_, err := Listen(c.addr)
	require.ErrorContains(t, err, "admin address "+c.addr)
	require.ErrorContains(t, err, "in use")
}
