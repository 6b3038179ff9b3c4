package netmesh

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

const (
	patience = 10 * time.Second // longer than anything takes on a loaded machine
	glance   = 5 * time.Millisecond
)

// recorder is a Handler that writes down what it is told.
type recorder struct {
	mu      sync.Mutex
	events  []string
	slow    elector.NodeID // what comes from it waits for release
	release chan struct{}
}

func (r *recorder) note(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, fmt.Sprintf(format, args...))
}

func (r *recorder) LinkUp(p PeerInfo)                             { r.note("%s up %d", p.Node, p.Boot) }
func (r *recorder) LinkDown(p elector.NodeID, e elector.Evidence) { r.note("%s down %s", p, e) }
func (r *recorder) Died(p elector.NodeID, proof elector.Proof)    { r.note("%s died %s", p, proof) }
func (r *recorder) Received(p elector.NodeID, g string, m elector.Message) {
	if p == r.slow {
		<-r.release
	}
	r.note("%s %s %s %d", p, g, m.Kind, m.Sequence)
}

// all returns what was told about a peer, in order.
func (r *recorder) all(peer elector.NodeID) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var mine []string
	for _, e := range r.events {
		if len(e) > len(peer) && e[:len(peer)+1] == string(peer)+" " {
			mine = append(mine, e[len(peer)+1:])
		}
	}
	return mine
}

func (r *recorder) count(peer elector.NodeID, event string) int {
	n := 0
	for _, e := range r.all(peer) {
		if e == event {
			n++
		}
	}
	return n
}

// sees waits until an event was told about peer.
func (r *recorder) sees(t testing.TB, peer elector.NodeID, event string) {
	t.Helper()
	require.Eventually(t, func() bool { return slices.Contains(r.all(peer), event) }, patience, glance,
		"waiting for %q of %s", event, peer)
}

// node is a mesh with what belongs to it.
type node struct {
	*Mesh
	*recorder
	cfg Config
}

func testConfig(name elector.NodeID) Config {
	return Config{
		Cluster: "test", Node: name, Identity: uuid.NewSHA1(uuid.Nil, []byte(name)), Boot: 1, Bind: "127.0.0.1:0",
		PingInterval: 100 * time.Millisecond, IdleTimeout: 5 * time.Second, RedialMin: 10 * time.Millisecond,
		RedialMax: 100 * time.Millisecond, HandshakeTimeout: 2 * time.Second,
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
