package gossip

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(settling{m}) }

// settling waits for the goroutines of probes before goleak looks for leaks: memberlist's
// Shutdown does not end a probe, whose time-out is up to eight periods.
type settling struct{ *testing.M }

func (s settling) Run() int {
	code := s.M.Run()
	for end := time.Now().Add(8 * fast().Probe); goleak.Find() != nil && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	return code
}

// patience is how long a test waits for something that takes about a second.
var patience = testkit.Limit(30 * time.Second)

// fast returns periods that keep tests short, except for probes: on a busy machine a process may
// answer late, and a member that does not answer in time counts as dead for a while.
func fast() Timing {
	return Timing{
		Probe:  2 * time.Second,
		Gossip: 20 * time.Millisecond,
		Sync:   time.Second,
		Retry:  50 * time.Millisecond,
		Rejoin: 200 * time.Millisecond,
	}
}

// deathSoon is for tests in which nodes die. Live nodes may look dead for a while, too, so such a
// test can only check the final state.
var deathSoon = probing(100 * time.Millisecond)

// peer is one node of a test.
type peer struct {
	*Gossip
	t      *testing.T
	mu     sync.Mutex
	events []Member
}

type option func(*Config)

func joining(addrs ...string) option { return func(c *Config) { c.Join = addrs } }
func knowing(addrs ...string) option { return func(c *Config) { c.KnownPeers = addrs } }
func probing(every time.Duration) option {
	return func(c *Config) { c.Timing.Probe = every }
}
func bound(addr string) option { return func(c *Config) { c.Bind = addr } }

func start(t *testing.T, node elector.NodeID, options ...option) *peer {
	t.Helper()
	p := &peer{t: t}
	cfg := Config{
		Cluster:  "test",
		Node:     node,
		Bind:     "127.0.0.1:0",
		Meta:     Meta{MeshAddr: "127.0.0.1:1000", Version: "1.0.0", Voter: true},
		Timing:   fast(),
		OnChange: p.note,
		Logger:   hclog.New(&hclog.LoggerOptions{Level: hclog.Info, Output: testWriter{t}}),
	}
	for _, o := range options {
		o(&cfg)
	}
	g, err := Start(cfg)
	require.NoError(t, err)
	p.Gossip = g
	t.Cleanup(p.kill)
	return p
}

// testWriter passes log lines to the test's own log.
type testWriter struct{ t *testing.T }

func (w testWriter) Write(line []byte) (int, error) {
	w.t.Logf("%s", line)
	return len(line), nil
}

func (p *peer) note(m Member) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.events = append(p.events, m)
}

func (p *peer) seen(state State, node elector.NodeID) []Member {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(p.events), func(m Member) bool {
		return m.State != state || m.Node != node
	})
}

// hears reports whether p has heard that node has a version.
func (p *peer) hears(node elector.NodeID, version string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.ContainsFunc(p.events, func(m Member) bool {
		return m.Node == node && m.Version == version
	})
}

// requireState waits until p heard that node is in a state, and returns the first time.
func (p *peer) requireState(state State, node elector.NodeID) Member {
	p.t.Helper()
	heard := func() bool { return len(p.seen(state, node)) > 0 }
	require.Eventually(p.t, heard, patience, 5*time.Millisecond,
		"%s should hear that %s is %v", p.Local().Node, node, state)
	return p.seen(state, node)[0]
}

// update changes what p tells the others.
func (p *peer) update(m Meta) {
	p.members.setMeta(wireMeta{Meta: m})
	require.NoError(p.t, p.list.UpdateNode(patience))
}

// kill ends the node without a goodbye, as a crash would.
func (p *peer) kill() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	require.NoError(p.t, p.Close(ctx))
}

func (p *peer) gossipAddr() string { return p.Local().GossipAddr }

// view returns the members that p holds for alive, with their addresses.
func (p *peer) view() map[elector.NodeID]string {
	alive := map[elector.NodeID]string{}
	p.members.mu.Lock()
	defer p.members.mu.Unlock()
	for _, m := range p.members.byID {
		if m.State == StateAlive {
			alive[m.Node] = m.GossipAddr
		}
	}
	return alive
}

// requireTogether waits until each of the peers sees exactly the others, where
// they are now.
func requireTogether(t *testing.T, peers ...*peer) {
	t.Helper()
	for _, p := range peers {
		want := map[elector.NodeID]string{}
		for _, other := range peers {
			if other != p {
				want[other.Local().Node] = other.gossipAddr()
			}
		}
		require.Eventually(t, func() bool { return maps.Equal(p.view(), want) }, patience,
			10*time.Millisecond,
			"%s should see %v", p.Local().Node, want)
	}
}

// freeAddr returns a loopback address that nobody uses. If the system has all of 127.0.0.0/8 it
// is an IP address on which no other process picks a port.
func freeAddr(t *testing.T) string {
	t.Helper()
	host := fmt.Sprintf("127.%d.%d.%d:0", 1+rand.IntN(254), rand.IntN(256), 1+rand.IntN(254))
	ln, err := net.Listen("tcp", host)
	if err != nil {
		ln, err = net.Listen("tcp", "127.0.0.1:0")
	}
	require.NoError(t, err)
	defer func() { require.NoError(t, ln.Close()) }()
	return ln.Addr().String()
}

// freePort returns a port that is free on all addresses and not among those that the kernel
// assigns, so that no other process listens on one of the addresses meanwhile.
func freePort(t *testing.T) string {
	t.Helper()
	for {
		port := strconv.Itoa(24_000 + rand.IntN(8_000))
		ln, err := net.Listen("tcp", ":"+port)
		if err == nil {
			require.NoError(t, ln.Close())
			return port
		}
	}
}
