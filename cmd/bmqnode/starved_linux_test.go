package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/base/certs"
	"github.com/bmqelect/bmqelect/internal/daemon/procs"
)

// starve lets a process have so much time of a processor in each tenth of a second, by a cgroup
// of its own.
func starve(t testing.TB, n *procs.Node, quota time.Duration) {
	t.Helper()
	name := fmt.Sprintf("bmqnode-test-%d-%s", n.Pid(), n.Name)
	dir, quotaFile, text := filepath.Join("/sys/fs/cgroup/cpu", name), "cpu.cfs_quota_us", "%d"
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil { // version 2
		dir, quotaFile, text = filepath.Join("/sys/fs/cgroup", name), "cpu.max", "%d 100000"
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Skipf("no cgroup can be made here: %v", err)
	}
	t.Cleanup(func() {
		require.Eventually(t, func() bool { return os.Remove(dir) == nil }, patience, 10*time.Millisecond)
	})
	write := func(file, text string) {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Skipf("this cgroup bounds no processor time: %v", err)
		}
	}
	write(quotaFile, fmt.Sprintf(text, quota.Microseconds()))
	pid := fmt.Sprint(n.Pid())
	write("cgroup.procs", pid)
	t.Cleanup(func() {
		root, _ := os.OpenFile(filepath.Join(filepath.Dir(dir), "cgroup.procs"), os.O_WRONLY, 0)
		defer root.Close()
		_, _ = root.WriteString(pid)
	})
}

// TestAStarvedNodeGetsLinks with a hundredth of a core: it cannot finish a handshake in the 100 ms
// that profile lan gives it at first. Then its links come and go, since it is too slow for the
// heartbeats, too.
func TestAStarvedNodeGetsLinks(t *testing.T) {
	if os.Getenv("BMQNODE_STARVED") == "" {
		t.Skip("it measures, for a minute: set BMQNODE_STARVED=1 on a quiet machine")
	}
	t.Parallel()
	const enough = 200 // of 2,400 looks within a minute; with 100 ms it is 0 to 120
	s, pki := layOut(t, 3, map[string]any{"profile": "lan", "rehearsal": true}), t.TempDir()
	_, err := certs.Issue(pki, "", procs.Numbered(3), time.Hour)
	require.NoError(t, err)
	s.encrypt(pki)
	require.NoError(t, s.Start())
	n := s.others(s.agree(s.Nodes(), nil).Leader)[0]
	linked := func(m cluster.MemberStatus) bool { return string(m.Node) == n.Name && m.Link == "up" }
	linkedTo := func() (up int) {
		for _, o := range s.others(cluster.NodeID(n.Name)) {
			st, err := o.Status(t.Context())
			require.NoError(t, err)
			if slices.ContainsFunc(st.Members, linked) {
				up++
			}
		}
		return up
	}
	s.isolate(cluster.NodeID(n.Name))
	s.eventually("it is cut off", func() bool { return linkedTo() == 0 })
	starve(t, n, time.Millisecond)
	s.heal()
	up, looks := 0, 0
	for began := time.Now(); time.Since(began) < time.Minute && up < enough; looks++ {
		time.Sleep(50 * time.Millisecond)
		up += linkedTo()
	}
	t.Logf("linked at %d of %d looks", up, 2*looks)
	require.GreaterOrEqual(t, up, enough)
}
