package admin

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/netmesh/fault"
)

func TestListenNamesTheAddress(t *testing.T) {
	_, c := serve(t, nil)
	_, err := Listen(c.addr, 0)
	require.ErrorContains(t, err, "admin address "+c.addr)
	require.ErrorContains(t, err, "in use")
}

// socketPath is short enough, whatever the test's name is.
func socketPath(t *testing.T) string {
	dir, err := os.MkdirTemp("", "bmq")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "admin.sock")
}

// TestTheAddressThatDoesNotAnswerIsSaidOnce: Go says it, too, when it dials.
func TestTheAddressThatDoesNotAnswerIsSaidOnce(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, ln.Close())
	for _, addr := range []string{ln.Addr().String(), "unix:" + filepath.Join(t.TempDir(), "none")} {
		client := NewClient(addr)
		_, err = client.Status(t.Context())
		require.ErrorContains(t, err, addr+": connect: ")
	}
}

func TestANodeAnswersOnAUnixSocket(t *testing.T) {
	path := socketPath(t)
	ln, err := Listen(UnixPrefix+path, 0o600)
	require.NoError(t, err)
	faults := fault.New()
	node := start(t, t.TempDir(), ln, faults)
	c := open(t, Config{Node: node, Faults: faults}, ln)
	st, err := c.Status(t.Context())
	require.NoError(t, err)
	require.Equal(t, node.Status().Identity, st.Identity)
	_, err = c.Tell(t.Context(), FaultRequest{HealAll: true})
	require.NoError(t, err, "the file's mode says who may")
	code, _ := request(t, c, "GET", "/v1/status", "", "Host", "whatever.example")
	require.Equal(t, 200, code, "no browser reaches it")
}

// listenAt listens on a Unix socket until the test ends.
func listenAt(t *testing.T, path string) net.Listener {
	t.Helper()
	ln, err := Listen(UnixPrefix+path, 0o660)
	require.NoError(t, err)
	t.Cleanup(func() { ln.Close() })
	return ln
}

func requireListens(t *testing.T, path string) {
	t.Helper()
	conn, err := net.Dial("unix", path)
	require.NoError(t, err)
	conn.Close()
}

func TestASocketIsPrivateAndGoesWithItsListener(t *testing.T) {
	path := socketPath(t)
	ln := listenAt(t, path)
	info, err := os.Lstat(path)
	require.NoError(t, err)
	require.Equal(t, os.ModeSocket|0o660, info.Mode())
	entries, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, entries, 1, "nothing else is left there")
	_, err = Listen(UnixPrefix+path, 0o600)
	require.EqualError(t, err,
		"admin socket "+path+": another process listens there; stop it, or name another path")
	requireListens(t, path)
	require.NoError(t, ln.Close())
	require.NoFileExists(t, path)
}

func TestASocketThatACrashLeftIsReplaced(t *testing.T) {
	path := socketPath(t)
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	require.NoError(t, err)
	dead.SetUnlinkOnClose(false)
	require.NoError(t, dead.Close())
	listenAt(t, path)
	requireListens(t, path)
}

func TestASocketOfAnotherIsNotRemoved(t *testing.T) {
	path := socketPath(t)
	old := listenAt(t, path)
	require.NoError(t, os.Remove(path))
	listenAt(t, path)
	require.NoError(t, old.Close())
	requireListens(t, path)
}

func TestPathsOfNoSocketAreNamed(t *testing.T) {
	path := socketPath(t)
	require.NoError(t, os.WriteFile(path, []byte("precious"), 0o600))
	_, err := Listen(UnixPrefix+path, 0o600)
	require.ErrorContains(t, err, "admin socket "+path+": there is a file that is no socket")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "precious", string(text))

	_, err = Listen("unix:///nowhere/admin.sock", 0o600)
	require.ErrorContains(t, err, "admin socket /nowhere/admin.sock: ")
	require.ErrorContains(t, err, "no such file")

	long := "/tmp/" + strings.Repeat("x", 200)
	_, err = Listen(UnixPrefix+long, 0o600)
	require.ErrorContains(t, err, "the path has 205 bytes, but must have at most 80")
}
