package main_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/daemon/procs"
	"github.com/bmqelect/bmqelect/internal/testkit/nodes"
	"github.com/bmqelect/bmqelect/netmesh"
)

// rejecting is a network behind a firewall that, once it is told to, answers each new
// connection with a reset, as a closed port does.
type rejecting struct{ rejects atomic.Bool }

// Listen listens on addr.
func (*rejecting) Listen(addr string) (net.Listener, error) { return net.Listen("tcp", addr) }

// Dial connects to addr, or is rejected.
func (r *rejecting) Dial(ctx context.Context, addr string) (net.Conn, error) {
	if r.rejects.Load() {
		return nil, syscall.ECONNREFUSED
	}
	return new(net.Dialer).DialContext(ctx, "tcp", addr)
}

// mourner is a member, played by the test, that says whether a command ran when the
// node that runs it was proven dead.
type mourner struct {
	nodes.Silent
	command int
	proven  chan bool
}

func (m mourner) Died(elector.NodeID, elector.Proof) {
	m.proven <- syscall.Kill(m.command, 0) == nil
}

// A member whose evidence connection was made while the command ran learns from its end
// nothing as long as the command runs, although its firewall refuses the dial after it.
func TestNodeIsNotProvenDeadWhileItsCommandRuns(t *testing.T) {
	t.Parallel()
	t.Run("plain", func(t *testing.T) { notProvenDead(t, "") })
	t.Run("TLS", func(t *testing.T) {
		pki := t.TempDir()
		nodes.Does(t, "certs", "--dir", pki, "n1", "b")
		notProvenDead(t, pki)
	})
}

func notProvenDead(t *testing.T, pki string) {
	file := filepath.Join(t.TempDir(), "pid")
	n := nodes.LayOut(t, nodes.Quick(), procs.Numbered(1)...).Nodes()[0]
	var own func() *netmesh.Credentials
	if pki != "" {
		nodes.Encrypt(t, n, pki)
		c, err := cluster.TLSDir(filepath.Join(pki, "b"))()
		require.NoError(t, err)
		own = func() *netmesh.Credentials { return &c.Credentials }
	}
	x := startExec(t, []string{"--config", n.ConfigFile, "--shutdown-timeout", "1s"},
		sh("trap '' TERM; echo $$ >"+file+"; echo ready; while :; do sleep 0.01; done"))
	x.prints("ready")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	require.NoError(t, err)

	firewall, m := &rejecting{}, mourner{command: pid, proven: make(chan bool, 1)}
	mesh := nodes.Intrude(t, n, netmesh.Config{Cluster: cluster.DefaultCluster, Node: "b",
		Network: firewall, TLS: own}, m)
	x.eventually("the evidence connection", func() bool { return mesh.Links()[0].Evidence })

	firewall.rejects.Store(true)
	x.signal(syscall.SIGKILL)
	select {
	case ran := <-m.proven:
		require.False(t, ran, "the command runs")
	case <-time.After(nodes.Patience):
		require.Fail(t, "the death is never proven")
	}
}
