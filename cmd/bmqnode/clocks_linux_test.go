package main_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/cluster/findings"
	"github.com/bmqelect/bmqelect/internal/daemon/procs"
)

// jumps adds to the wall clock of its process, and to nothing else, the seconds in a file.
const jumps = `package main

import (
	"fmt"
	"os"
	"time"
)

func init() {
	go func() {
		for ; ; time.Sleep(10 * time.Millisecond) {
			text, _ := os.ReadFile(os.Getenv("BMQNODE_WALL_JUMP"))
			var seconds int64
			if _, err := fmt.Sscan(string(text), &seconds); err == nil {
				time.WallJump.Store(seconds)
			}
		}
	}()
}
`

// jumping builds bmqnode with that, and with a package time that has time.WallJump.
func jumping(t *testing.T) string {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	require.NoError(t, err)
	here, err := os.Getwd()
	require.NoError(t, err)
	dir := t.TempDir()
	source := filepath.Join(strings.TrimSpace(string(root)), "src", "time", "time.go")
	text, err := os.ReadFile(source)
	require.NoError(t, err)
	const now = "sec, nsec, mono := runtimeNow()\n"
	require.Contains(t, string(text), now)
	patched := strings.Replace(string(text), now, now+"\tsec += WallJump.Load()\n", 1)
	patched = strings.Replace(patched, "import (", "import (\n\t\"sync/atomic\"", 1)
	files := map[string]string{
		source: patched + "\nvar WallJump atomic.Int64\n", filepath.Join(here, "jumps.go"): jumps,
	}
	replace := map[string]string{}
	for name, text := range files {
		replace[name] = filepath.Join(dir, filepath.Base(name))
		require.NoError(t, os.WriteFile(replace[name], []byte(text), 0o600))
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(dir+"/overlay.json", overlay, 0o600))
	args := append(buildArgs, "-overlay", dir+"/overlay.json", "-o", dir+"/bmqnode", ".")
	out, err := exec.Command("go", args...).CombinedOutput()
	require.NoError(t, err, string(out))
	return dir + "/bmqnode"
}

// TestWallClocksThatJump past the end of a certificate, and before its beginning: leases and
// links stay. A node whose wall clock is wrong makes no new links, and says why.
func TestWallClocksThatJump(t *testing.T) {
	if os.Getenv("BMQNODE_CLOCKS") == "" {
		t.Skip("compiles the standard library anew; set BMQNODE_CLOCKS=1")
	}
	t.Parallel()
	built := jumping(t)
	s, _ := layOutWithTLS(t)
	for _, n := range s.Nodes() {
		n.Binary = filepath.Join(n.Dir, "run.sh")
		script := fmt.Sprintf("#!/bin/sh\nBMQNODE_WALL_JUMP=%s/jump exec %s \"$@\"\n", n.Dir, built)
		require.NoError(t, os.WriteFile(n.Binary, []byte(script), 0o700))
	}
	require.NoError(t, s.Start())
	g := s.agree(s.Nodes(), nil)
	leader, others := s.node(g.Leader), s.others(g.Leader)
	const years = 5 * 365 * 24 * time.Hour
	for _, jump := range []time.Duration{years, -years} {
		for _, n := range []*procs.Node{leader, others[0]} {
			s.jump(n, jump)
			s.eventually("it finds its certificate of no use", func() bool {
				return s.finds(n, findings.Certificate, "certificate has expired or is not yet valid")
			})
			s.agree(s.Nodes(), same(g)) // all links are up: nobody else follows

			// A node that comes up is not let in by the one whose clock is wrong.
			require.NoError(t, others[1].Kill())
			require.NoError(t, others[1].Start())
			s.eventually("both ends say that there is no link", func() bool {
				return s.finds(n, findings.TLS, "certificate has expired or is not yet valid") &&
					s.finds(others[1], findings.TLS, "does not accept this node's certificate")
			})
			require.True(t, s.leads(leader, g))
			s.jump(n, 0)
			s.agree(s.Nodes(), same(g))
			s.eventually("nothing is wrong any more", func() bool {
				return !s.finds(n, findings.Certificate, "")
			})
		}
	}
	require.Empty(t, s.transitions(lostLeadership))
	require.NoError(t, others[1].Kill())
	s.jump(others[1], years)
	s.mu.Lock()
	delete(s.exits, others[1].Name)
	s.mu.Unlock()
	require.NoError(t, others[1].Start())
	require.ErrorContains(t, s.exit(others[1]), "exit status 1", "it does not start")
}

// jump sets how far a node's wall clock is off.
func (s *scene) jump(n *procs.Node, by time.Duration) {
	text := fmt.Appendf(nil, "%d", int(by.Seconds()))
	require.NoError(s.t, os.WriteFile(n.Dir+"/jump", text, 0o600))
}

func (s *scene) leads(n *procs.Node, g cluster.GroupStatus) bool {
	st, err := n.Status(s.t.Context())
	return err == nil && st.Groups[0].Leading && st.Groups[0].Term == g.Term
}

// finds reports whether a node has a finding of that kind with that text.
func (s *scene) finds(n *procs.Node, kind findings.Kind, text string) bool {
	st, err := n.Status(s.t.Context())
	return err == nil && slices.ContainsFunc(st.Findings, func(f findings.Finding) bool {
		return f.Kind == kind && strings.Contains(f.Detail, text)
	})
}
