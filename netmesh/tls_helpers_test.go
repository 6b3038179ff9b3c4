package netmesh

import (
	"flag"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/base/certs"
)

// allEncrypted plays all tests of the package with TLS.
var allEncrypted = flag.Bool("tls", false, "give every node TLS, in every test")

// pki holds the certificates of the cluster "test", by their directories. There is one for each
// year, because virtual time has its own year.
var pki = struct {
	sync.Mutex

	dir  string
	made map[string]*Credentials
}{made: map[string]*Credentials{}}

// credentialsOf returns those of a member of the cluster "test".
func credentialsOf(node elector.NodeID) *Credentials {
	pki.Lock()
	defer pki.Unlock()
	var err error
	if pki.dir == "" {
		if pki.dir, err = os.MkdirTemp("", "netmesh-"); err != nil {
			panic(err)
		}
	}
	dir := directoryOf(node)
	if pki.made[dir] != nil {
		return pki.made[dir]
	}
	_, err = certs.Issue(filepath.Dir(dir), "test", []string{string(node)}, 1000*time.Hour)
	if err != nil {
		panic(err)
	}
	pki.made[dir] = load(dir)
	return pki.made[dir]
}

func directoryOf(node elector.NodeID) string {
	return filepath.Join(pki.dir, time.Now().Format("2006"), string(node))
}

// load reads credentials from a directory.
func load(dir ...string) *Credentials {
	c := &Credentials{}
	var err error
	if c.Certificate, c.Roots, err = certs.Load(filepath.Join(dir...)); err != nil {
		panic(err)
	}
	return c
}

// encrypted gives a node TLS.
func encrypted(cfg *Config) {
	c := credentialsOf(cfg.Node)
	cfg.TLS = func() *Credentials { return c }
}

// shows gives a node TLS with certain credentials.
func shows(c *Credentials) func(*Config) {
	return func(cfg *Config) { cfg.TLS = func() *Credentials { return c } }
}

// shake begins a handshake of x with n, with TLS if n has it.
func shake(t testing.TB, conn net.Conn, n *node, patience time.Duration) *handshake {
	t.Helper()
	h := newHandshake(conn, patience)
	if n.cfg.TLS != nil && !n.cfg.TLS().AcceptPlain {
		require.NoError(t, h.secure(asX(), n.cfg.Node))
	}
	return h
}

// asX is as much of the mesh of x as a handshake needs.
func asX() *Mesh {
	cfg := testConfig("x")
	encrypted(&cfg)
	return &Mesh{cfg: cfg}
}

// plainOnly skips a test if all nodes have TLS: certificates would decide before the rule under
// test does.
func plainOnly(t *testing.T) {
	t.Helper()
	if *allEncrypted {
		t.Skip("certificates decide that before")
	}
}

// plainAndTLS plays a test, or a benchmark, without TLS and with it.
func plainAndTLS[T interface {
	Run(name string, f func(T)) bool
}](t T, play func(t T, edit func(*Config))) {
	t.Run("tls=off", func(t T) { play(t, func(*Config) {}) })
	t.Run("tls=on", func(t T) { play(t, encrypted) })
}
