package main_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/daemon/admin"
	"github.com/bmqelect/bmqelect/internal/daemon/procs"
	"github.com/bmqelect/bmqelect/internal/testkit/nodes"
)

// handsOver makes the leader of a scene unfit, and waits until a fit node leads. It returns the old
// leader. The time that it logs is with the defaults of the probes.
func handsOver(
	t *testing.T, s *nodes.Scene, probe string, spoil func(cluster.NodeID),
) cluster.NodeID {
	before := s.Agree(s.Nodes(), nil)
	var told atomic.Pointer[admin.ProbeEvent]
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	following := make(chan struct{})
	go func() {
		defer close(following)
		_ = s.Named(before.Leader).Client().Follow(ctx, &admin.Stream{
			Probe: func(e admin.ProbeEvent) { told.Store(&e) },
		})
	}()
	began := time.Now()
	spoil(before.Leader)
	after := s.Agree(s.Nodes(), nodes.Above(before.Term))
	t.Logf("%s: a fit node leads after %s", probe, time.Since(began).Round(10*time.Millisecond))
	require.NotEqual(t, before.Leader, after.Leader)
	s.Eventually("an event", func() bool { return told.Load() != nil })
	require.Equal(t, probe, told.Load().Name)
	cancel()
	<-following
	return before.Leader
}

// requireWords demands that everybody who asks gets the words of a probe.
func requireWords(t *testing.T, s *nodes.Scene, id cluster.NodeID, probe, words string) {
	at := s.Named(id).AdminAddr
	out := nodes.Does(t, "status", "--admin", at)
	require.Contains(t, out, fmt.Sprintf("%s: not fit to lead: %s: %s", id, probe, words))
	out = nodes.Does(t, "doctor", "--json", "--admin", at)
	require.Contains(t, out, `"kind": "not-fit"`)
	require.Contains(t, out, words)
	up := fmt.Sprintf("bmqelect_probe_up{probe=%q} 0", probe)
	require.Contains(t, get(t, s.Named(id), "/metrics"), up)
	require.Positive(t,
		s.Said(string(id), "probe fails: this node is not fit to lead", words))
}

func TestALeaderWhoseCommandFailsHandsOver(t *testing.T) {
	t.Parallel()
	bad := filepath.Join(t.TempDir(), "bad-")
	options := nodes.Quick()
	options["health-command"] = "echo asked; ! cat " + bad + "$BMQ_NODE 2>/dev/null"
	s := nodes.LayOut(t, options, procs.Numbered(3)...)
	require.NoError(t, s.Start())
	old := handsOver(t, s, "command", func(id cluster.NodeID) {
		require.NoError(t, os.WriteFile(bad+string(id), []byte("lag is 40s\n"), 0o600))
	})
	requireWords(t, s, old, "command", "lag is 40s")
	require.NoError(t, os.Remove(bad+string(old)))
	s.Eventually("fit again", func() bool {
		return s.Said(string(old), "probe passes", "command") > 0
	})

	// A node that starts with a probe that fails follows, and says why it does no more.
	require.NoError(t, os.WriteFile(bad+string(old), []byte("not ready yet\n"), 0o600))
	s.Halt(s.Named(old))
	s.Exit(s.Named(old))
	s.Restarted(s.Named(old))
	now := s.Agree(s.Nodes(), nil)
	require.NotEqual(t, old, now.Leader)
	requireWords(t, s, old, "command", "not ready yet")
}

func TestALeaderWhoseURLFailsHandsOver(t *testing.T) {
	t.Parallel()
	var bad atomic.Value
	bad.Store("")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == bad.Load() {
			http.Error(w, "queue is full", http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(server.Close)
	s := nodes.LayOut(t, nodes.Quick(), procs.Numbered(3)...)
	for _, n := range s.Nodes() {
		nodes.Configure(t, n, "health-url: "+server.URL+"/"+n.Name)
	}
	require.NoError(t, s.Start())
	old := handsOver(t, s, "url", func(id cluster.NodeID) { bad.Store("/" + string(id)) })
	requireWords(t, s, old, "url", "503 Service Unavailable: queue is full")
}

// disksHere marks the process of TestALeaderWhoseDiskHangsHandsOver that has a mount namespace of
// its own.
const disksHere = "BMQNODE_TEST_DISKS"

// The disk is an ext4 that is frozen: every write and sync there waits, as where a device or its
// network has gone. So it does on the leader's disk, and then on all.
func TestALeaderWhoseDiskHangsHandsOver(t *testing.T) {
	t.Parallel()
	if os.Getenv(disksHere) == "" {
		if os.Getuid() != 0 {
			t.Skip("needs root, for mounts and fsfreeze")
		}
		cmd := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v")
		cmd.Env = append(os.Environ(), disksHere+"=1")
		cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
		out, err := cmd.CombinedOutput()
		if strings.Contains(string(out), "--- SKIP") {
			t.Skip(string(out))
		}
		t.Logf("%s", out)
		require.NoError(t, err)
		return
	}
	disks := map[cluster.NodeID]*freezer{} // before the nodes, which end before them
	for _, name := range procs.Numbered(3) {
		disks[cluster.NodeID(name)] = newFreezer(t, filepath.Join(t.TempDir(), name))
	}
	s := nodes.LayOut(t, nodes.Quick(), procs.Numbered(3)...)
	for _, n := range s.Nodes() {
		nodes.Edit(t, n, func(text string) string {
			return strings.Replace(text, n.Dir+"/state", disks[cluster.NodeID(n.Name)].dir, 1)
		})
	}
	require.NoError(t, s.Start())
	old := handsOver(t, s, "disk", func(id cluster.NodeID) { disks[id].freeze(t) })
	words := "a sync in " + disks[old].dir + " takes longer than 3s"
	requireWords(t, s, old, "disk", words)

	// Nobody is fit any more: leadership stays, with its lease.
	before := s.Agree(s.Nodes(), nil)
	for id, d := range disks {
		if id != old {
			d.freeze(t)
		}
	}
	s.Eventually("all are unfit", func() bool {
		for _, n := range s.Nodes() {
			st, err := n.Status(t.Context())
			if err != nil || st.Groups[0].Unfit == "" {
				return false
			}
		}
		return true
	})
	require.Equal(t, before.Term, s.Agree(s.Nodes(), nil).Term)
	for _, d := range disks {
		d.thaw()
	}
	s.Eventually("all are fit again", func() bool {
		for _, n := range s.Nodes() {
			st, err := n.Status(t.Context())
			if err != nil || st.Groups[0].Unfit != "" {
				return false
			}
		}
		return true
	})
	require.LessOrEqual(t, s.Agree(s.Nodes(), nil).Term, before.Term+1, "one handover at most")
}

// freezer is a file system that can hang. It goes on when the test's process ends, however.
type freezer struct {
	dir  string
	thaw func()
}

func newFreezer(t *testing.T, dir string) *freezer {
	image := dir + ".image"
	for _, command := range [][]string{
		{"truncate", "-s", "32M", image}, {"mkfs.ext4", "-q", "-F", image}, {"mkdir", dir},
		{"mount", "-o", "loop", image, dir}, {"fsfreeze", "-f", dir}, {"fsfreeze", "-u", dir},
	} {
		if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			_ = exec.Command("umount", dir).Run()
			t.Skipf("needs ext4 on a loop device, and fsfreeze: %v: %v: %s", command, err, out)
		}
	}
	t.Cleanup(func() { assert.NoError(t, exec.Command("umount", dir).Run()) })
	return &freezer{dir, func() {}}
}

func (f *freezer) freeze(t *testing.T) {
	guard := exec.Command("sh", "-c", `cat; fsfreeze -u "$0"`, f.dir)
	in, err := guard.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, guard.Start())
	f.thaw = func() {
		in.Close()
		_ = guard.Wait() // a second time it has ended
	}
	t.Cleanup(f.thaw)
	require.NoError(t, exec.Command("fsfreeze", "-f", f.dir).Run())
}
