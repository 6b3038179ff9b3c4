package main_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/internal/daemon/procs"
	"github.com/bmqelect/bmqelect/internal/testkit"
)

const (
	haproxyConfig = "../../deploy/haproxy/haproxy.cfg"
	haproxyCA     = "/etc/haproxy/bmqnode-ca.crt"
)

// haproxyBinary skips the test where there is none.
func haproxyBinary(t *testing.T) string {
	for _, name := range []string{"haproxy", "/usr/sbin/haproxy"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("haproxy is not installed (Debian: apt-get install haproxy)")
	return ""
}

func TestTheHAProxyExampleIsValid(t *testing.T) {
	t.Parallel()
	_, pki := layOutWithTLS(t)
	text, err := os.ReadFile(haproxyConfig)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "haproxy.cfg")
	require.NoError(t, os.WriteFile(path, []byte(strings.Replace(string(text), haproxyCA,
		pki+"/ca.crt", 1)), 0o600))
	out, err := exec.Command(haproxyBinary(t), "-c", "-f", path).CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// TestHAProxyFindsTheLeader sends a steady load through a real HAProxy with the
// example's configuration, kills the leader, and later lets its heir hand over.
func TestHAProxyFindsTheLeader(t *testing.T) {
	t.Parallel()
	binary, host := haproxyBinary(t), ownAddress(t)
	s, pki := layOutWithTLS(t)
	for _, n := range s.Nodes() {
		publish(t, n, host, "admin-open: [leader]")
	}
	require.NoError(t, s.Start())
	service := newService(t, s)
	load := newLoad(t, startHAProxy(t, binary, s, service, host, pki))
	first := s.agree(s.Nodes(), nil)
	load.flows("to the first leader", s.Nodes())

	require.NoError(t, s.node(first.Leader).Kill())
	rest := s.others(first.Leader)
	second := s.agree(rest, above(first.Term))
	load.flows("after the kill", rest)

	heir := s.others(first.Leader, second.Leader)[:1]
	does(t, "transfer", "--to", heir[0].Name, "--admin",
		rest[0].AdminAddr+","+rest[1].AdminAddr)
	load.flows("after the transfer", heir)

	load.stop()
	service.check(t)
	t.Logf("%d requests answered, %d refused by a copy that does not lead, %d not routed or cut off; longest time without an answer: %s",
		load.answered, service.refused.Load(), load.failed-int(service.refused.Load()), load.gap)
}

// startHAProxy runs HAProxy on the example's configuration, with the addresses of
// the mesh and the service in it, and returns the socket on which it listens.
func startHAProxy(
	t *testing.T, binary string, s *scene, service *service, host, pki string,
) (socket string) {
	dir, err := os.MkdirTemp("", "bmq") // short: a socket's path is bounded
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket = filepath.Join(dir, "front.sock")
	config, err := os.ReadFile(haproxyConfig)
	require.NoError(t, err)
	pairs := []string{"bind :8080", "bind unix@" + socket, haproxyCA, pki + "/ca.crt"}
	for i, n := range s.Nodes() {
		_, port, err := net.SplitHostPort(n.AdminAddr)
		require.NoError(t, err)
		example := "10.0.0." + strconv.Itoa(i+1)
		pairs = append(pairs, example+":8081 addr "+example+" port 7402",
			service.addrs[n.Name]+" addr "+host+" port "+port)
	}
	for i := 0; i < len(pairs); i += 2 {
		require.Equal(t, 1, strings.Count(string(config), pairs[i]), "the example has %q", pairs[i])
	}
	path := filepath.Join(dir, "haproxy.cfg")
	require.NoError(t, os.WriteFile(path,
		[]byte(strings.NewReplacer(pairs...).Replace(string(config))), 0o600))
	inBackground(t, exec.Command(binary, "-db", "-f", path))
	return socket
}

// inBackground runs a process until the test ends; what it says is shown if that fails.
func inBackground(t *testing.T, cmd *exec.Cmd) {
	var said lockedBuffer
	cmd.Stdout, cmd.Stderr = &said, &said
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // "killed" is no news
		if t.Failed() {
			t.Logf("%s said:\n%s", cmd.Path, said.Bytes())
		}
	})
}

// load is several clients that send one request after the other.
type load struct {
	t       *testing.T
	client  http.Client
	next    atomic.Int64
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu               sync.Mutex
	answered, failed int
	last             time.Time
	gap              time.Duration
	by               map[string]int // answers in a row, by the node that gave them
}

const (
	loadClients = 3
	loadPace    = 10 * time.Millisecond // between two requests of a client
	loadShown   = 30                    // answers that show that requests flow
)

func newLoad(t *testing.T, socket string) *load {
	ctx, cancel := context.WithCancel(context.Background())
	l := &load{t: t, cancel: cancel, by: map[string]int{}}
	l.client.Timeout = testkit.Limit(5 * time.Second)
	l.client.Transport = &http.Transport{DialContext: func(ctx context.Context, _,
		_ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}
	for range loadClients {
		l.running.Go(func() { l.send(ctx) })
	}
	t.Cleanup(l.stop)
	return l
}

func (l *load) stop() {
	l.cancel()
	l.running.Wait()
	l.client.CloseIdleConnections()
}

func (l *load) send(ctx context.Context) {
	ticks := time.NewTicker(loadPace)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
		node, err := l.request(ctx, strconv.FormatInt(l.next.Add(1), 10))
		if err != nil {
			node = ""
		}
		l.note(node)
	}
}

var errUnanswered = errors.New("not answered")

// request sends a request once, and returns the node that answered it.
func (l *load) request(ctx context.Context, id string) (node string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://service/"+id, nil)
	if err != nil {
		return "", err
	}
	resp, err := l.client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if resp.StatusCode != http.StatusOK {
		err = errUnanswered
	}
	return string(body), err
}

// note takes down who answered a request; "" is nobody.
func (l *load) note(node string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if node == "" {
		l.failed++
		clear(l.by)
		return
	}
	l.answered++
	l.by[node]++
	now := time.Now()
	if !l.last.IsZero() {
		l.gap = max(l.gap, now.Sub(l.last))
	}
	l.last = now
}

// flows waits until one of the nodes answers one request after the other: HAProxy
// sends them nowhere else.
func (l *load) flows(when string, by []*procs.Node) {
	l.t.Helper()
	l.mu.Lock()
	clear(l.by)
	l.mu.Unlock()
	require.Eventually(l.t, func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return slices.ContainsFunc(by, func(n *procs.Node) bool { return l.by[n.Name] >= loadShown })
	}, patience, 10*time.Millisecond, when)
}
