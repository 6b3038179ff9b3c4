package main_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/daemon/procs"
)

// TestARollingUpgradeAndBack replaces the nodes of a cluster of each released version one by
// one by this build, and then puts the old ones back. Leadership moves only when its own
// node restarts, and the nodes of both builds agree all the time.
func TestARollingUpgradeAndBack(t *testing.T) {
	t.Parallel()
	list, err := os.ReadFile("../../testdata/releases.txt")
	require.NoError(t, err)
	for line := range strings.Lines(string(list)) {
		var version, commit string
		if n, _ := fmt.Sscan(line, &version, &commit); n < 2 || version == "#" {
			continue
		}
		t.Run(version, func(t *testing.T) {
			old := buildRelease(t, commit)
			options := quick()
			delete(options, "rehearsal")
			s := layOut(t, 3, options)
			for _, n := range s.Nodes() {
				n.Binary = old
			}
			require.NoError(t, s.Start())
			g := s.agree(s.Nodes(), nil)
			g = s.roll(g, binary)
			s.roll(g, old)
		})
	}
}

// roll restarts each node with another binary, the leader last.
func (s *scene) roll(g cluster.GroupStatus, binary string) cluster.GroupStatus {
	restart := func(n *procs.Node) {
		s.stop(n)
		n.Binary = binary
		require.NoError(s.t, n.Start())
	}
	for _, n := range s.others(g.Leader) {
		restart(n)
		s.agree(s.Nodes(), same(g))
	}
	restart(s.node(g.Leader))
	next := s.agree(s.Nodes(), above(g.Term))
	require.NotEqual(s.t, g.Leader, next.Leader)
	return next
}

// building is held while a release is built: two tests need it, and the second finds it.
var building sync.Mutex

// buildRelease builds bmqnode of an earlier commit, if the history is there.
func buildRelease(t *testing.T, commit string) string {
	building.Lock()
	defer building.Unlock()
	dir := filepath.Join(filepath.Dir(binary), commit)
	built := filepath.Join(dir, "released")
	if _, err := os.Stat(built); err == nil {
		return built
	}
	require.NoError(t, os.MkdirAll(dir, 0o700))
	archive := exec.Command("git", "archive", "--output", filepath.Join(dir, "tree.tar"), commit)
	archive.Dir = "../.."
	if out, err := archive.CombinedOutput(); err != nil {
		t.Skipf("the history does not reach back to %s: %v: %s", commit, err, out)
	}
	unpack := exec.Command("tar", "-xf", "tree.tar")
	unpack.Dir = dir
	out, err := unpack.CombinedOutput()
	require.NoError(t, err, string(out))
	args := append(buildArgs, "-buildvcs=false", "-o", "released", "./cmd/bmqnode")
	build := exec.Command("go", args...)
	build.Dir = dir
	out, err = build.CombinedOutput()
	require.NoError(t, err, string(out))
	return built
}
