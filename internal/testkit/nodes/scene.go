package nodes

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/daemon/admin"
	"github.com/bmqelect/bmqelect/internal/daemon/procs"
	"github.com/bmqelect/bmqelect/lsn"
)

const basePort = 17_400

// Quick are timers that a slow machine still keeps, and a test waits for gladly. Where it is
// permitted, a node runs before what else keeps the machine busy: it would lose its lease.
func Quick() map[string]any {
	return map[string]any{
		"realtime": MayBeRealTime(), "rehearsal": true, "initial-wait": "1600ms",
		"max-random-wait": "500ms", "scouting-result": "500ms", "election-result": "500ms",
		"heartbeat-broadcast": "250ms", "heartbeat-miss-count": 6, "lease": "1500ms",
	}
}

// Scene is a mesh of real processes, and what they said.
type Scene struct {
	*procs.Mesh
	T         testing.TB
	Dir       string
	TokenFile string // of DemandToken

	mu    sync.Mutex
	lines []procs.Line
	exits map[string]error
}

// Play starts a mesh of n nodes.
func Play(t testing.TB, n int, options map[string]any) *Scene {
	s := LayOut(t, options, procs.Numbered(n)...)
	require.NoError(t, s.Start())
	return s
}

// Elected starts a mesh of n nodes, and waits for their leader.
func Elected(t testing.TB, n int) (*Scene, cluster.GroupStatus) {
	s := Play(t, n, Quick())
	return s, s.Agree(s.Nodes(), nil)
}

// LayOut prepares a mesh of nodes with these names.
func LayOut(t testing.TB, options map[string]any, names ...string) *Scene {
	s := &Scene{T: t, Dir: t.TempDir(), exits: map[string]error{}}
	var err error
	s.Mesh, err = procs.New(procs.Config{
		Binary: Binary, Names: names, Dir: s.Dir, BasePort: basePort, Options: options,
		OnLine: func(l procs.Line) { s.mu.Lock(); defer s.mu.Unlock(); s.lines = append(s.lines, l) },
		OnExit: func(node string, err error) { s.mu.Lock(); defer s.mu.Unlock(); s.exits[node] = err },
	})
	require.NoError(t, err)
	t.Cleanup(s.end)
	return s
}

// Secured prepares a mesh of three with the certificates that the command makes.
func Secured(t testing.TB) (s *Scene, pki string) {
	s, pki = LayOut(t, Quick(), procs.Numbered(3)...), filepath.Join(t.TempDir(), "pki")
	out := Does(t, "certs", "--dir", pki, "n1", "n2", "n3")
	require.Regexp(t, `^n1: \S+/pki/n1, valid until [-\dT:]+Z\nn2: [^\n]+\nn3: [^\n]+\n$`, out)
	for _, n := range s.Nodes() {
		Encrypt(t, n, pki)
	}
	return s, pki
}

// Encrypt writes into a node's file where its certificate is.
func Encrypt(t testing.TB, n *procs.Node, pki string) {
	Configure(t, n, "tls-dir: "+filepath.Join(pki, n.Name))
}

// DemandToken makes all nodes demand a token of who changes something. It is for a mesh that
// does not run.
func (s *Scene) DemandToken() {
	s.T.Helper()
	s.TokenFile = filepath.Join(s.Dir, "token")
	require.NoError(s.T, os.WriteFile(s.TokenFile, []byte("correct-horse-battery-staple\n"), 0o600))
	for _, n := range s.Nodes() {
		Configure(s.T, n, "admin-token-file: "+s.TokenFile)
	}
}

// Configure appends lines to the file of a node that does not run.
func Configure(t testing.TB, n *procs.Node, lines ...string) {
	t.Helper()
	Edit(t, n, func(text string) string { return text + strings.Join(lines, "\n") + "\n" })
}

// Edit changes the file of a node that does not run.
func Edit(t testing.TB, n *procs.Node, edit func(text string) string) {
	t.Helper()
	text, err := os.ReadFile(n.ConfigFile)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(n.ConfigFile, []byte(edit(string(text))), 0o600))
}

// end stops the mesh; what it said is shown if the test has failed.
func (s *Scene) end() {
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	assert.NoError(s.T, s.Stop(ctx))
	for _, l := range s.lines {
		assert.NotContains(s.T, l.Text, "DATA RACE", l.Node)
	}
	if s.T.Failed() {
		for _, l := range s.lines {
			s.T.Logf("%s %s", l.Node, l.Text)
		}
	}
}

// Halt stops a node as SIGTERM does.
func (s *Scene) Halt(n *procs.Node) {
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	require.NoError(s.T, n.Stop(ctx))
}

// Named is the node of that name.
func (s *Scene) Named(name cluster.NodeID) *procs.Node {
	n, err := s.Node(string(name))
	require.NoError(s.T, err)
	return n
}

// Others are all nodes except these.
func (s *Scene) Others(not ...cluster.NodeID) []*procs.Node {
	return slices.DeleteFunc(slices.Clone(s.Nodes()), func(n *procs.Node) bool {
		return slices.Contains(not, cluster.NodeID(n.Name))
	})
}

// Admins are the addresses of the admin sides of all nodes, with commas between them.
func (s *Scene) Admins() string {
	var all []string
	for _, n := range s.Nodes() {
		all = append(all, n.AdminAddr)
	}
	return strings.Join(all, ",")
}

// Names are the names of nodes.
func Names(nodes []*procs.Node) (ids []cluster.NodeID) {
	for _, n := range nodes {
		ids = append(ids, cluster.NodeID(n.Name))
	}
	return ids
}

// Agree waits for one leader among nodes that satisfies accept.
func (s *Scene) Agree(nodes []*procs.Node,
	accept func(cluster.GroupStatus) bool) cluster.GroupStatus {
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	g, err := procs.Agree(ctx, nodes, accept)
	require.NoError(s.T, err)
	return g
}

// Same accepts the leader of before alone, in its term.
func Same(g cluster.GroupStatus) func(cluster.GroupStatus) bool {
	return func(now cluster.GroupStatus) bool { return now.Leader == g.Leader && now.Term == g.Term }
}

// Above accepts leaders of a term above this one.
func Above(term lsn.Term) func(cluster.GroupStatus) bool {
	return func(now cluster.GroupStatus) bool { return now.Term > term }
}

// Fault makes a node cut or heal links.
func (s *Scene) Fault(at *procs.Node, req admin.FaultRequest) {
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	credentials, err := admin.ReadCredentials("", s.TokenFile)
	require.NoError(s.T, err)
	_, err = credentials.Client(at.AdminAddr, "", true).Tell(ctx, req)
	require.NoError(s.T, err)
}

// Isolate cuts every link of a node.
func (s *Scene) Isolate(id cluster.NodeID) {
	s.Fault(s.Named(id), admin.FaultRequest{Cut: Names(s.Others(id))})
}

// Heal heals every link.
func (s *Scene) Heal() {
	for _, n := range s.Nodes() {
		s.Fault(n, admin.FaultRequest{HealAll: true})
	}
}

// Lines are what nodes have said so far.
func (s *Scene) Lines() []procs.Line {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.lines)
}

// Said counts the lines of a node's log with that message, all of these details in them.
func (s *Scene) Said(node, message string, details ...string) (count int) {
	for _, l := range s.Lines() {
		lacks := func(detail string) bool { return !strings.Contains(l.Detail, detail) }
		if l.Node == node && l.Message == message && !slices.ContainsFunc(details, lacks) {
			count++
		}
	}
	return count
}

// Transitions are those that nodes have logged so far and that satisfy want.
func (s *Scene) Transitions(want func(admin.Event) bool) (found []admin.Event) {
	for _, l := range s.Lines() {
		if e, ok := l.Transition(); ok && want(e) {
			found = append(found, e)
		}
	}
	return found
}

// BecameLeader tells the transitions to leader.
func BecameLeader(e admin.Event) bool { return e.To == "LEADER" && e.From != "LEADER" }

// LostLeadership tells the transitions from leader.
func LostLeadership(e admin.Event) bool { return e.From == "LEADER" && e.To != "LEADER" }

// Eventually waits until cond is true.
func (s *Scene) Eventually(what string, cond func() bool) {
	s.T.Helper()
	require.Eventually(s.T, cond, Patience, 20*time.Millisecond, what)
}

// Exit waits for the end of a process and returns how it ended.
func (s *Scene) Exit(n *procs.Node) (how error) {
	s.T.Helper()
	s.Eventually(n.Name+" exits", func() (ended bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		how, ended = s.exits[n.Name]
		return ended
	})
	return how
}

// Restarted starts a process that has ended, so that Exit waits for its next end.
func (s *Scene) Restarted(n *procs.Node) {
	s.mu.Lock()
	delete(s.exits, n.Name)
	s.mu.Unlock()
	require.NoError(s.T, n.Start(), fmt.Sprint("start of ", n.Name))
}
