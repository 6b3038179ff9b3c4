package netmesh

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/elector/pair"
	"github.com/bmqelect/bmqelect/internal/memnet"
	"github.com/bmqelect/bmqelect/internal/testkit"
	"github.com/google/uuid"
	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// smallFrame is the smallest limit that a peer of an older build may have.
const smallFrame = 4 << 10

// patience is longer than one step takes on this machine, whatever else runs on it.
var patience = testkit.Limit(30 * time.Second)

const glance = 5 * time.Millisecond

// until waits until done reports true.
func until(t testing.TB, done func() bool) {
	t.Helper()
	require.Eventually(t, done, patience, glance)
}

// virtual plays a test in virtual time, on a network in memory.
func virtual(t *testing.T, play func(t *testing.T, net *memnet.Network)) {
	synctest.Test(t, func(t *testing.T) { play(t, memnet.New()) })
}

// recorder is a Handler and an Observer that writes down what it is told.
type recorder struct {
	mu      sync.Mutex
	events  []string
	seen    []string       // as an Observer
	slow    elector.NodeID // what comes from it waits for release
	held    atomic.Bool    // something has waited
	release chan struct{}
}

func (r *recorder) note(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, fmt.Sprintf(format, args...))
}

func (r *recorder) LinkUp(p PeerInfo) {
	r.observe("%s has the meta %q", p.Node, p.Meta)
	r.note("%s up %d", p.Node, p.Boot)
}
func (r *recorder) LinkDown(p elector.NodeID, e elector.Evidence) { r.note("%s down %s", p, e) }
func (r *recorder) Died(p elector.NodeID, proof elector.Proof)    { r.note("%s died %s", p, proof) }
func (r *recorder) Received(p elector.NodeID, g string, m elector.Message) {
	if p == r.slow {
		r.held.Store(true)
		<-r.release
	}
	r.note("%s %s %s %d", p, g, m.Kind, m.Sequence)
}

func (r *recorder) Changed(p elector.NodeID, session uint64, changes []pair.Change) {
	for _, c := range changes {
		r.note("%s %s", p, c)
	}
}
func (r *recorder) Beaten(p elector.NodeID, session uint64, b pair.Beat, age time.Duration) {
	if p == r.slow {
		r.held.Store(true)
		<-r.release
	}
	r.note("%s beat %d", p, b.Sequence)
	r.observe("%s beat %d took %s", p, b.Sequence, age)
}
func (r *recorder) Acked(p elector.NodeID, session uint64, a pair.Ack) {
	r.note("%s ack %d", p, a.Sequence)
}

func (r *recorder) Noted(p elector.NodeID, n Note) {
	r.note("%s %s note %d of %d bytes", p, n.Group, n.Kind, len(n.Body))
}

func (r *recorder) observe(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen = append(r.seen, fmt.Sprintf(format, args...))
}

func (r *recorder) Told(p elector.NodeID, theirs Facts) {
	r.observe("%s tells %v %d %v", p, theirs.Voters, theirs.VoterCount, theirs.Settings)
}
func (r *recorder) Answered(p elector.NodeID, ping Ping) {
	r.observe("%s answers %t", p, ping.Back >= ping.Sent && ping.Answered >= ping.Received)
}
func (r *recorder) Refused(p elector.NodeID, reason Reason, why string) {
	r.observe("%s refused %s %s", p, reason, why)
}

// observed reports whether something that contains all the words was seen.
func (r *recorder) observed(words ...string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.seen, func(seen string) bool {
		return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(seen, w) })
	})
}

// observes waits until something that contains all the words was seen.
func (r *recorder) observes(t testing.TB, words ...string) {
	t.Helper()
	require.Eventually(t, func() bool { return r.observed(words...) }, patience, glance,
		"waiting for %q", words)
}

// all returns what was told about a peer, in order.
func (r *recorder) all(peer elector.NodeID) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var mine []string
	for _, e := range r.events {
		if event, ok := strings.CutPrefix(e, string(peer)+" "); ok {
			mine = append(mine, event)
		}
	}
	return mine
}

func (r *recorder) count(peer elector.NodeID, event string) int {
	return len(slices.DeleteFunc(r.all(peer), func(e string) bool { return e != event }))
}

// sees waits until an event was told about peer.
func (r *recorder) sees(t testing.TB, peer elector.NodeID, event string) {
	t.Helper()
	require.Eventually(t, func() bool { return slices.Contains(r.all(peer), event) }, patience, glance,
		"waiting for %q of %s", event, peer)
}

// node is a mesh with its handler and configuration.
type node struct {
	*Mesh
	*recorder
	cfg Config
}

func testConfig(name elector.NodeID) Config {
	return Config{
		Cluster: "test", Node: name, Identity: uuid.NewSHA1(uuid.Nil, []byte(name)), Boot: 1,
		Bind: "127.0.0.1:0",
		times: times{
			ping: 100 * time.Millisecond, idle: 5 * time.Second, redialMin: 10 * time.Millisecond,
			redialMax: 100 * time.Millisecond, handshake: 2 * time.Second,
		},
	}
}

// start starts a node and closes it when the test ends.
func start(t testing.TB, name elector.NodeID, edit ...func(*Config)) *node {
	t.Helper()
	return startWith(t, name, &recorder{}, edit...)
}

func startWith(t testing.TB, name elector.NodeID, r *recorder, edit ...func(*Config)) *node {
	t.Helper()
	cfg := testConfig(name)
	for _, e := range edit {
		e(&cfg)
	}
	if *allEncrypted && cfg.TLS == nil {
		encrypted(&cfg)
	}
	n := &node{recorder: r, cfg: cfg}
	var err error
	n.Mesh, err = Listen(cfg, n.recorder)
	require.NoError(t, err)
	t.Cleanup(func() { n.close(t) })
	return n
}

func (n *node) close(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	require.NoError(t, n.Close(ctx))
}

// knows makes n dial others.
func (n *node) knows(others ...*node) {
	for _, o := range others {
		n.AddPeer(o.cfg.Node, o.Addr().String())
	}
}

func heartbeat(seq uint64) elector.Message {
	return elector.Message{Kind: elector.LeaderHeartbeat, Term: 5, Sequence: seq, SentAt: 123456789012}
}

func ack(seq uint64) elector.Message {
	m := heartbeat(seq)
	m.Kind = elector.HeartbeatAck
	return m
}

type nodeID = elector.NodeID

// ofPeer reads something of a peer, nil if it is unknown, under the lock of the mesh.
func ofPeer[T any](n *node, id nodeID, read func(*peer) T) T {
	n.Mesh.mu.RLock()
	defer n.Mesh.mu.RUnlock()
	return read(n.peers[id])
}

// linkTo is the link to a peer, or nil.
func (n *node) linkTo(id nodeID) *link {
	return ofPeer(n, id, func(p *peer) *link { return p.link })
}

// evidenceTo is the evidence connection to a peer that stands, or nil.
func (n *node) evidenceTo(id nodeID) *evidence {
	return ofPeer(n, id, func(p *peer) *evidence {
		if p == nil || p.evidence == nil || p.evidence.seen != elector.EvidenceNone {
			return nil
		}
		return p.evidence
	})
}

// stands reports whether there is an evidence connection to a peer.
func (n *node) stands(id nodeID) bool { return n.evidenceTo(id) != nil }

// trustsTheEndOf reports whether n would take the end of the evidence connection for a proof.
func (n *node) trustsTheEndOf(id nodeID) bool {
	return ofPeer(n, id, func(p *peer) bool { return p.evidence != nil && p.evidence.provable() })
}

// resetLink breaks the connections to a peer as a broken network would.
func (n *node) resetLink(peer nodeID) {
	n.Mesh.mu.RLock()
	defer n.Mesh.mu.RUnlock()
	if p := n.peers[peer]; p != nil && p.link != nil {
		p.link.breakOff()
		if p.evidence != nil {
			reset(p.evidence.conn)
		}
	}
}

// pairOn starts two nodes on a network in memory; a dials b.
func pairOn(t *testing.T, net *memnet.Network, edit ...func(*Config)) (a, b *node) {
	a, b = start(t, "a", append(edit, onHost(net))...), start(t, "b", append(edit, onHost(net))...)
	a.AddPeer("b", "b:7000")
	synctest.Wait()
	return a, b
}

// calledOn starts two nodes on a network in memory; b dialed a a minute ago.
func calledOn(t *testing.T, net *memnet.Network) (a, b *node) {
	a, b = start(t, "a", onHost(net)), start(t, "b", onHost(net))
	b.AddPeer("a", "a:7000")
	time.Sleep(time.Minute)
	return a, b
}

// cut applies a rule to both directions between two hosts.
func cut(net *memnet.Network, a, b string, rule memnet.Rule) {
	net.Filter(a, b, rule)
	net.Filter(b, a, rule)
}

// onHost puts a node on a host of an in-memory network.
func onHost(n *memnet.Network, edit ...func(*Config)) func(*Config) {
	return func(c *Config) {
		c.Network, c.Bind = n.Host(string(c.Node)), string(c.Node)+":7000"
		for _, e := range edit {
			e(c)
		}
	}
}

func boot(n uint64) func(*Config) { return func(c *Config) { c.Boot = n } }

func last(events []string, n int) []string { return events[max(len(events)-n, 0):] }

// other gives a node another data directory under the same name.
func other(c *Config) { c.Identity[0]++ }

// logs gives a node a log to read.
func logs(to io.Writer) func(*Config) {
	return func(c *Config) { c.Logger = hclog.New(&hclog.LoggerOptions{Output: to}) }
}

// lines is a log.
type lines struct{ testkit.Buffer }

// have reports whether the log contains a text; it ignores the backslashes of nested quotes.
func (l *lines) have(text string) bool {
	plain := bytes.ReplaceAll([]byte(l.String()), []byte(`\`), nil)
	return bytes.Contains(plain, []byte(text))
}

func TestMain(m *testing.M) {
	if peer := os.Getenv(childAddr); peer != "" {
		os.Exit(beChild(peer))
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(pki.dir)
		os.Exit(code)
	}))
}
