package admin

import (
	"context"
	"encoding/json"
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
	node, err := cluster.Start(t.Context(), cluster.Config{
		Node: "a", Voters: append(voters, "a"), DataDir: dir, Faults: faults,
		GossipAddr: "127.0.0.1:0", MeshAddr: "127.0.0.1:0", AdminAddr: ln.Addr().String(),
		Meta: "http://a.example",
	})
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

func TestHealthAndReadinessAreTwoThings(t *testing.T) {
	_, c := serve(t, nil, "b", "c") // no quorum here: alive, but without a leader
	c.says(t, http.StatusOK, "", "GET", "/healthz", "")
	c.says(t, http.StatusServiceUnavailable, "no leader: 2 of 3 voters needed, 1 reachable",
		"GET", "/readyz", "")

	node, c := serve(t, nil)
	leads(t, node)
	c.says(t, http.StatusOK, "", "GET", "/readyz", "")
	require.NoError(t, node.Close(t.Context()))
	c.says(t, http.StatusServiceUnavailable, "", "GET", "/readyz", "")
	c.says(t, http.StatusServiceUnavailable, "", "GET", "/healthz", "")
}

func TestBadRequestsGetProblemsWithTheirCause(t *testing.T) {
	ln := listen(t)
	node := start(t, t.TempDir(), ln, nil)
	c := open(t, Config{Node: node}, seemsAt{ln, socketAddr})
	leads(t, node)
	for name, r := range map[string]struct {
		method, path, body string
		code               int
		want               string
	}{
		"no JSON": {"POST", "/v1/transfer", "b", 400, "invalid character"},
		"no body": {"POST", "/v1/transfer", "", 409, "no follower could take over"},
		"null":    {"POST", "/v1/transfer", `null`, 400, "it must be one JSON object, or empty"},
		"a list":  {"POST", "/v1/step-down", `[]`, 400, "cannot unmarshal array"},
		"two objects": {"POST", "/v1/transfer", `{"to":""} {"to":"b"}`, 400,
			"there is more after the JSON object"},
		"trailing text": {"POST", "/v1/step-down", `{} please`, 400,
			"there is more after the JSON object"},
		"unknown field":  {"POST", "/v1/transfer", `{"target":"b"}`, 400, `unknown field \"target\"`},
		"not a voter":    {"POST", "/v1/transfer", `{"to":"b"}`, 409, `\"b\": not one of the voters`},
		"nobody to lead": {"POST", "/v1/transfer", `{}`, 409, "no follower could take over"},
		"no faults":      {"POST", "/v1/faults", `{"heal_all":true}`, 404, "--rehearsal"},
		"wrong method":   {"GET", "/v1/transfer", "", 405, "the method must be one of POST"},
		"no such path": {"GET", "/v2/status", "", 404,
			"there is no /v2/status; /v1/openapi.yaml lists"},
		"nor its leader": {"GET", "/v1/elections/x/leader", "", 404, `node a has no election \"x\" open`},
		"nor a transfer": {"POST", "/v1/transfer", `{"group":"x"}`, 404,
			`node a has no election \"x\" open`},
		"nor a rest": {"POST", "/v1/step-down", `{"group":"x"}`, 404,
			`node a has no election \"x\" open`},
		"odd rest": {"POST", "/v1/step-down", `{"for":"soon"}`, 400,
			`for: time: invalid duration \"soon\"; must be a duration such as 30s`},
		"endless rest": {"POST", "/v1/step-down", `{"for":"25h"}`, 409, "it must be between 0 and 24h"},
		"no keys of gossip": {"POST", "/v1/gossip-key", `{"step":"add","key":"plain"}`, 409,
			"this node has no keys of gossip: start it with --tls-dir"},
		"no such step": {"POST", "/v1/gossip-key", `{"step":"drop","key":"plain"}`, 400,
			`step is \"drop\", but must be one of [\"add\" \"use\" \"remove\"]`},
		"no key": {"POST", "/v1/gossip-key", `{"step":"add","key":"c2VjcmV0"}`, 400,
			`key: it is neither 32 bytes in base64 nor the word \"plain\"`},
		"huge body": {"POST", "/v1/transfer", `{"to":"` + strings.Repeat("x", maxBody) + `"}`, 400,
			"too large"},
	} {
		t.Run(name, func(t *testing.T) {
			resp, text := exchange(t, c, r.method, r.path, r.body)
			require.Equal(t, r.code, resp.StatusCode, text)
			require.Contains(t, text, r.want)
			require.Equal(t, "application/problem+json", resp.Header.Get("Content-Type"))
			var p Problem
			require.NoError(t, json.Unmarshal([]byte(text), &p))
			require.Equal(t, r.code, p.Status)
		})
	}
	require.True(t, node.IsLeader(), "nothing of this changed anything")
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
