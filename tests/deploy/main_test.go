// Package deploy tests what the folder of that name holds, and ways to run nodes, with the tools
// that they are for: systemd-analyze, HAProxy, Prometheus, shells, groff, Go's compiler. A test
// whose tool is missing is skipped and says so.
package deploy

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/daemon/admin"
	"github.com/bmqelect/bmqelect/internal/testkit/nodes"
)

func TestMain(m *testing.M) { nodes.Main(m) }

// recipes is the folder whose files are tested.
const recipes = nodes.Top + "/deploy/"

// ownLoopback is an address of this machine that no other process listens on, except those that
// listen on all: Linux has all of 127.0.0.0/8.
func ownLoopback(n int) string {
	pid := os.Getpid() % (250 * 250)
	return fmt.Sprintf("127.%d.%d.%d", 100+n, 1+pid/250, 1+pid%250)
}

// writeIn writes a file, and returns its path.
func writeIn(t *testing.T, dir, name, text string) (path string) {
	path = filepath.Join(dir, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	return path
}

// statusAt asks the node at an admin address.
func statusAt(t *testing.T, addr string) (st cluster.Status, ok bool) {
	st, err := admin.NewClient(addr).Status(t.Context())
	return st, err == nil
}
