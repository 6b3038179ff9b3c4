package main_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/daemon/admin"
	"github.com/bmqelect/bmqelect/internal/daemon/procs"
	"github.com/bmqelect/bmqelect/internal/testkit"
	"github.com/bmqelect/bmqelect/lsn"
)

// binary is bmqnode, built from this tree, with the race detector if the tests
// have it.
var binary string

func TestMain(m *testing.M) {
	playSideBySide()
	dir, err := os.MkdirTemp("", "bmqnode-e2e-")
	if err != nil {
		panic(err)
	}
	binary = filepath.Join(dir, "bmqnode")
	build := exec.Command("go", append(buildArgs, "-o", binary, ".")...)
	if out, err := build.CombinedOutput(); err != nil {
		panic(fmt.Sprintf("%s: %s", err, out))
	}
	// A child in which a race is found ends at once, and no other waits at its end
	// for the detector.
	os.Setenv("GORACE", "halt_on_error=1 atexit_sleep_ms=0")
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		os.RemoveAll(dir)
		os.Exit(code)
	}))
}

// playSideBySide lets more tests run at once than there are cores, unless -parallel
// says how many: processes mostly wait.
func playSideBySide() {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", "8")
	}
}

// patience bounds one step that must happen; nothing is concluded from how long it took.
var patience = testkit.Limit(time.Minute)

const basePort = 17_400

// quick are timers that a slow machine still keeps, and a test waits for gladly.
func quick() map[string]any {
	return map[string]any{
		"rehearsal": true, "initial-wait": "1600ms", "max-random-wait": "500ms",
		"scouting-result": "500ms",
		"election-result": "500ms", "heartbeat-broadcast": "250ms", "heartbeat-miss-count": 6,
		"lease": "1500ms",
	}
}

// scene is a mesh of real processes, and what they said.
type scene struct {
	*procs.Mesh
	t     testing.TB
	dir   string
	mu    sync.Mutex
	lines []procs.Line
	exits map[string]error

	tokenFile string // of demandToken
}

// play starts a mesh of n nodes.
func play(t testing.TB, n int, options map[string]any) *scene {
	s := layOut(t, n, options)
	require.NoError(t, s.Start())
	return s
}

// elected starts a mesh of n nodes, and waits for their leader.
func elected(t testing.TB, n int) (*scene, cluster.GroupStatus) {
	s := play(t, n, quick())
	return s, s.agree(s.Nodes(), nil)
}

// layOut prepares a mesh of n nodes.
func layOut(t testing.TB, n int, options map[string]any) *scene {
	s := &scene{t: t, dir: t.TempDir(), exits: map[string]error{}}
	var err error
	s.Mesh, err = procs.New(procs.Config{
		Binary: binary, Names: procs.Numbered(n), Dir: s.dir, BasePort: basePort, Options: options,
		OnLine: func(l procs.Line) { s.mu.Lock(); defer s.mu.Unlock(); s.lines = append(s.lines, l) },
		OnExit: func(node string, err error) { s.mu.Lock(); defer s.mu.Unlock(); s.exits[node] = err },
	})
	require.NoError(t, err)
	t.Cleanup(s.end)
	return s
}

// demandToken makes all nodes demand a token of who changes something. It is for a mesh that
// does not run.
func (s *scene) demandToken() {
	s.t.Helper()
	s.tokenFile = filepath.Join(s.dir, "token")
	require.NoError(s.t, os.WriteFile(s.tokenFile, []byte("correct-horse-battery-staple\n"), 0o600))
	for _, n := range s.Nodes() {
		configure(s.t, n, "admin-token-file: "+s.tokenFile)
	}
}

// configure appends a line to the file of a node that does not run.
func configure(t testing.TB, n *procs.Node, line string) {
	t.Helper()
	f, err := os.OpenFile(n.ConfigFile, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = fmt.Fprintln(f, line)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

// end stops the mesh; what it said is shown if the test has failed.
func (s *scene) end() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	assert.NoError(s.t, s.Stop(ctx))
	for _, l := range s.lines {
		assert.NotContains(s.t, l.Text, "DATA RACE", l.Node)
	}
	if s.t.Failed() {
		for _, l := range s.lines {
			s.t.Logf("%s %s", l.Node, l.Text)
		}
	}
}

func (s *scene) node(name cluster.NodeID) *procs.Node {
	n, err := s.Node(string(name))
	require.NoError(s.t, err)
	return n
}

func (s *scene) others(not ...cluster.NodeID) []*procs.Node {
	var nodes []*procs.Node
	for _, n := range s.Nodes() {
		keep := true
		for _, id := range not {
			keep = keep && n.Name != string(id)
		}
		if keep {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// agree waits for one leader among nodes that satisfies accept.
func (s *scene) agree(nodes []*procs.Node,
	accept func(cluster.GroupStatus) bool) cluster.GroupStatus {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	g, err := procs.Agree(ctx, nodes, accept)
	require.NoError(s.t, err)
	return g
}

func (s *scene) fault(at *procs.Node, req admin.FaultRequest) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	credentials, err := admin.ReadCredentials("", s.tokenFile)
	require.NoError(s.t, err)
	c := credentials.Client(at.AdminAddr, "", true)
	_, err = c.Tell(ctx, req)
	require.NoError(s.t, err)
}

func (s *scene) heal() {
	for _, n := range s.Nodes() {
		s.fault(n, admin.FaultRequest{HealAll: true})
	}
}

// isolate cuts every link of a node.
func (s *scene) isolate(id cluster.NodeID) {
	s.fault(s.node(id), admin.FaultRequest{Cut: names(s.others(id))})
}

func names(nodes []*procs.Node) (ids []cluster.NodeID) {
	for _, n := range nodes {
		ids = append(ids, cluster.NodeID(n.Name))
	}
	return ids
}

// transitions are those that nodes have logged so far and that satisfy want.
func (s *scene) transitions(want func(admin.Event) bool) (found []admin.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.lines {
		if e, ok := l.Transition(); ok && want(e) {
			found = append(found, e)
		}
	}
	return found
}

func (s *scene) eventually(what string, cond func() bool) {
	s.t.Helper()
	require.Eventually(s.t, cond, patience, 20*time.Millisecond, what)
}

// exit waits for the end of a process and returns how it ended.
func (s *scene) exit(n *procs.Node) (how error) {
	s.t.Helper()
	s.eventually(n.Name+" exits", func() (ended bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		how, ended = s.exits[n.Name]
		return ended
	})
	return how
}

func becameLeader(e admin.Event) bool   { return e.To == "LEADER" && e.From != "LEADER" }
func lostLeadership(e admin.Event) bool { return e.From == "LEADER" && e.To != "LEADER" }

func same(g cluster.GroupStatus) func(cluster.GroupStatus) bool {
	return func(now cluster.GroupStatus) bool { return now.Leader == g.Leader && now.Term == g.Term }
}

func above(term lsn.Term) func(cluster.GroupStatus) bool {
	return func(now cluster.GroupStatus) bool { return now.Term > term }
}

// linkTo is the state of a node's link to another.
func linkTo(st cluster.Status, name string) string {
	for _, m := range st.Members {
		if string(m.Node) == name {
			return m.Link
		}
	}
	return "none"
}
