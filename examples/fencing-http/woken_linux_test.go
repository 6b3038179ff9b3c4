package main

import (
	"bytes"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/internal/testkit"
	"github.com/bmqelect/bmqelect/lsn"
)

// output is what a process or a logger has written so far.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// find returns what the groups of the pattern match; nil if it does not match yet.
func (o *output) find(pattern string) []string {
	return regexp.MustCompile(pattern).FindStringSubmatch(o.String())
}

// node is a node in a process of its own.
type node struct {
	output
	process *os.Process
}

// startNode starts this test's binary as a node.
func startNode(t *testing.T, pause string, args ...string) *node {
	t.Helper()
	n := &node{}
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), pauseFile+"="+pause)
	cmd.Stdout, cmd.Stderr = n, n
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	require.NoError(t, cmd.Start())
	n.process = cmd.Process
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // ends a stopped process, too
		_ = cmd.Wait()         // "killed" is no news
		if t.Failed() {
			t.Logf("%v wrote:\n%s", args, n)
		}
		require.NotContains(t, n.String(), "DATA RACE")
	})
	return n
}

// startThree starts three nodes that write to the resource at url.
func startThree(t *testing.T, pause, url string) (nodes []*node) {
	t.Helper()
	var join string
	for _, name := range []string{"a", "b", "c"} {
		n := startNode(t, pause, "-voters", "a,b,c", "-node", name, "-join", join,
			"-data", filepath.Join(t.TempDir(), name), "-resource", url, "-every", "50ms")
		eventually(t, "a node tells its address", func() bool { return n.find(`gossip=(\S+)\n`) != nil })
		join = n.find(`gossip=(\S+)\n`)[1]
		nodes = append(nodes, n)
	}
	return nodes
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	require.Eventually(t, is, testkit.Limit(time.Minute), 20*time.Millisecond, what)
}

func parseToken(t *testing.T, text string) lsn.LSN {
	t.Helper()
	token, err := lsn.Parse(text)
	require.NoError(t, err)
	return token
}

// TestAWokenLeaderIsRefused stops the leader's process between taking a token
// and sending it, until another node leads and has written.
func TestAWokenLeaderIsRefused(t *testing.T) {
	dir, resourceLog := t.TempDir(), &output{}
	resource, err := OpenResource(filepath.Join(dir, "value.json"),
		hclog.New(&hclog.LoggerOptions{Output: resourceLog}))
	require.NoError(t, err)
	server := httptest.NewServer(resource)
	t.Cleanup(server.Close)
	pause := filepath.Join(dir, "pause")
	nodes := startThree(t, pause, server.URL)
	eventually(t, "a leader writes", func() bool { return resource.fence.Newest().Term > 0 })

	require.NoError(t, os.WriteFile(pause, nil, 0o600))
	old, held := waitForPaused(t, nodes)
	eventually(t, "another leader writes",
		func() bool { return resource.fence.Newest().Term > held.Term })

	refused := `refused: a newer leader has written:.* token=` + regexp.QuoteMeta(held.String()) +
		` newest=(\S+)\s`
	require.Nil(t, old.find(refused))
	eventually(t, "the old leader wakes, writes and is refused", func() bool {
		_ = old.process.Signal(syscall.SIGCONT) // again and again, in case it came before the stop
		return old.find(refused) != nil
	})
	newest := parseToken(t, old.find(refused)[1])
	require.Greater(t, newest.Term, held.Term)
	require.NotNil(t, resourceLog.find(refused), "the resource tells both tokens, too")
	require.Nil(t, old.find(`INFO.  written: .*token=`+regexp.QuoteMeta(held.String())+`\b`))
}

// waitForPaused returns the node that has paused, and the token that it holds.
func waitForPaused(t *testing.T, nodes []*node) (paused *node, held lsn.LSN) {
	t.Helper()
	eventually(t, "the leader takes a token and pauses", func() bool {
		for _, n := range nodes {
			if found := n.find(`paused with token=(\S+)\n`); found != nil {
				paused, held = n, parseToken(t, found[1])
			}
		}
		return paused != nil
	})
	return paused, held
}
