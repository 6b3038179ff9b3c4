package deploy

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/internal/daemon/procs"
	"github.com/bmqelect/bmqelect/internal/testkit"
	"github.com/bmqelect/bmqelect/internal/testkit/nodes"
)

// haproxy runs HAProxy, or skips the test where there is none.
func haproxy(t *testing.T, args ...string) *exec.Cmd {
	for _, name := range []string{"haproxy", "/usr/sbin/haproxy"} {
		if path, err := exec.LookPath(name); err == nil {
			return exec.Command(path, args...)
		}
	}
	t.Skip("haproxy is not installed (Debian: apt-get install haproxy)")
	return nil
}

// haproxyConfig is the example's configuration in a file, each first of two texts replaced by the
// second.
func haproxyConfig(t *testing.T, pairs ...string) (path string) {
	text, err := os.ReadFile(recipes + "haproxy/haproxy.cfg")
	require.NoError(t, err)
	for i := 0; i < len(pairs); i += 2 {
		require.Equal(t, 1, strings.Count(string(text), pairs[i]), "the example has %q", pairs[i])
	}
	config := strings.NewReplacer(pairs...).Replace(string(text))
	return writeIn(t, t.TempDir(), "haproxy.cfg", config)
}

const haproxyCA = "/etc/haproxy/bmqnode-ca.crt"

func TestTheHAProxyExampleIsValid(t *testing.T) {
	t.Parallel()
	_, pki := nodes.Secured(t)
	config := haproxyConfig(t, haproxyCA, pki+"/ca.crt")
	out, err := haproxy(t, "-c", "-f", config).CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// TestHAProxyFindsTheLeader sends a steady load through a real HAProxy with the
// example's configuration, kills the leader, and later lets its heir hand over. No request is
// answered twice.
func TestHAProxyFindsTheLeader(t *testing.T) {
	t.Parallel()
	haproxy(t)
	host := nodes.OwnAddress(t)
	s, pki := nodes.Secured(t)
	socket := filepath.Join(nodes.ShortDir(t), "front.sock")
	pairs := []string{"bind :8080", "bind unix@" + socket, haproxyCA, pki + "/ca.crt"}
	service := &service{answered: map[string][]string{}}
	for i, n := range s.Nodes() {
		_, port, err := net.SplitHostPort(nodes.Publish(t, n, host, "admin-open: [leader]"))
		require.NoError(t, err)
		example := "10.0.0." + strconv.Itoa(i+1)
		pairs = append(pairs, example+":8081 addr "+example+" port 7402",
			service.beside(t, n)+" addr "+host+" port "+port)
	}
	nodes.Launch(t, haproxy(t, "-db", "-f", haproxyConfig(t, pairs...)))
	require.NoError(t, s.Start())
	service.load(t, socket)

	first := s.Agree(s.Nodes(), nil)
	service.flows(t, "to the first leader", s.Nodes())
	require.NoError(t, s.Named(first.Leader).Kill())
	rest := s.Others(first.Leader)
	second := s.Agree(rest, nodes.Above(first.Term))
	service.flows(t, "after the kill", rest)
	heir := s.Others(first.Leader, second.Leader)[:1]
	nodes.Does(t, "transfer", "--to", heir[0].Name, "--admin",
		rest[0].AdminAddr+","+rest[1].AdminAddr)
	service.flows(t, "after the transfer", heir)
	service.mu.Lock()
	defer service.mu.Unlock()
	for request, by := range service.answered {
		require.Len(t, by, 1, "request %s", request)
	}
}

// service is a copy of a service beside each node of a mesh. A copy serves a
// request only if its own node leads, which it asks for each.
type service struct {
	mu       sync.Mutex
	answered map[string][]string // nodes whose copies answered a request
	latest   []string            // nodes whose answers arrived in a row
}

// asks asks nodes whether they lead.
var asks = http.Client{Transport: &http.Transport{DisableKeepAlives: true},
	Timeout: nodes.Patience}

// beside starts the copy of a node, and returns its address.
func (v *service) beside(t *testing.T, n *procs.Node) (addr string) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		resp, err := asks.Get("http://" + n.AdminAddr + "/v1/leader")
		if err == nil {
			resp.Body.Close()
		}
		if err != nil || resp.StatusCode != http.StatusOK {
			http.Error(w, n.Name+" does not lead", http.StatusServiceUnavailable)
			return
		}
		v.mu.Lock()
		v.answered[r.URL.Path] = append(v.answered[r.URL.Path], n.Name)
		v.mu.Unlock()
		_, _ = io.WriteString(w, n.Name)
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

// load is several clients that send one request after the other until the test ends.
func (v *service) load(t *testing.T, socket string) {
	ctx, cancel := context.WithCancel(context.Background())
	client := http.Client{Timeout: testkit.Limit(5 * time.Second)}
	client.Transport = &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		},
	}
	var running sync.WaitGroup
	for number := range 3 {
		running.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				v.request(ctx, &client, strconv.Itoa(number)+"-"+strconv.Itoa(i))
				time.Sleep(10 * time.Millisecond)
			}
		})
	}
	t.Cleanup(func() { cancel(); running.Wait(); client.CloseIdleConnections() })
}

// request sends a request once, and notes who answered it.
func (v *service) request(ctx context.Context, client *http.Client, id string) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://service/"+id, nil)
	if err != nil {
		panic(err)
	}
	var by []byte
	resp, err := client.Do(req)
	if err == nil {
		by, err = io.ReadAll(resp.Body)
		resp.Body.Close()
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if err != nil || resp.StatusCode != http.StatusOK {
		v.latest = nil
	} else {
		v.latest = append(v.latest, string(by))
	}
}

// flows waits until one of the nodes answers thirty requests in a row: HAProxy sends them nowhere
// else.
func (v *service) flows(t *testing.T, when string, by []*procs.Node) {
	t.Helper()
	v.mu.Lock()
	v.latest = nil
	v.mu.Unlock()
	require.Eventually(t, func() bool {
		v.mu.Lock()
		defer v.mu.Unlock()
		last := v.latest[max(len(v.latest)-30, 0):]
		return len(last) == 30 && len(slices.Compact(slices.Clone(last))) == 1 &&
			slices.ContainsFunc(by, func(n *procs.Node) bool { return n.Name == last[0] })
	}, nodes.Patience, 10*time.Millisecond, when)
}
