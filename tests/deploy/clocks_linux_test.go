package deploy

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

	"github.com/bmqelect/bmqelect/cluster/findings"
	"github.com/bmqelect/bmqelect/internal/daemon/procs"
	"github.com/bmqelect/bmqelect/internal/testkit/nodes"
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
	command, err := filepath.Abs(nodes.Top + "/cmd/bmqnode")
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
		source: patched + "\nvar WallJump atomic.Int64\n", filepath.Join(command, "jumps.go"): jumps,
	}
	replace := map[string]string{}
	for name, text := range files {
		replace[name] = writeIn(t, dir, filepath.Base(name), text)
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	require.NoError(t, err)
	list := writeIn(t, dir, "overlay.json", string(overlay))
	require.NoError(t, nodes.Build(nodes.Top, dir+"/bmqnode", "-overlay", list))
	return dir + "/bmqnode"
}

// Wall clocks jump past the end of a certificate, and before its beginning. Leases and links stay.
// A node whose wall clock is wrong makes no new links, and says why.
func TestWallClocksThatJump(t *testing.T) {
	if os.Getenv("BMQNODE_CLOCKS") == "" {
		t.Skip("compiles the standard library anew; set BMQNODE_CLOCKS=1")
	}
	t.Parallel()
	built := jumping(t)
	s, _ := nodes.Secured(t)
	for _, n := range s.Nodes() {
		n.Binary = filepath.Join(n.Dir, "run.sh")
		script := fmt.Sprintf("#!/bin/sh\nBMQNODE_WALL_JUMP=%s/jump exec %s \"$@\"\n", n.Dir, built)
		require.NoError(t, os.WriteFile(n.Binary, []byte(script), 0o700))
	}
	require.NoError(t, s.Start())
	g := s.Agree(s.Nodes(), nil)
	leader, others := s.Named(g.Leader), s.Others(g.Leader)
	const years = 5 * 365 * 24 * time.Hour
	for _, by := range []time.Duration{years, -years} {
		for _, n := range []*procs.Node{leader, others[0]} {
			jump(s, n, by)
			s.Eventually("it finds its certificate of no use", func() bool {
				return finds(s, n, findings.Certificate, "certificate has expired or is not yet valid")
			})
			s.Agree(s.Nodes(), nodes.Same(g)) // all links are up: nobody else follows

			// A node that comes up is not let in by the one whose clock is wrong.
			require.NoError(t, others[1].Kill())
			require.NoError(t, others[1].Start())
			s.Eventually("both ends say that there is no link", func() bool {
				return finds(s, n, findings.TLS, "certificate has expired or is not yet valid") &&
					finds(s, others[1], findings.TLS, "does not accept this node's certificate")
			})
			st, err := leader.Status(t.Context())
			require.NoError(t, err)
			require.True(t, st.Groups[0].Leading && st.Groups[0].Term == g.Term)
			jump(s, n, 0)
			s.Agree(s.Nodes(), nodes.Same(g))
			s.Eventually("nothing is wrong any more", func() bool {
				return !finds(s, n, findings.Certificate, "")
			})
		}
	}
	require.Empty(t, s.Transitions(nodes.LostLeadership))
	require.NoError(t, others[1].Kill())
	jump(s, others[1], years)
	s.Restarted(others[1])
	require.ErrorContains(t, s.Exit(others[1]), "exit status 1", "it does not start")
}

// jump sets how far a node's wall clock is off.
func jump(s *nodes.Scene, n *procs.Node, by time.Duration) {
	text := fmt.Append(nil, int(by.Seconds()))
	require.NoError(s.T, os.WriteFile(n.Dir+"/jump", text, 0o600))
}

// finds reports whether a node has a finding of that kind with that text.
func finds(s *nodes.Scene, n *procs.Node, kind findings.Kind, text string) bool {
	st, err := n.Status(s.T.Context())
	return err == nil && slices.ContainsFunc(st.Findings, func(f findings.Finding) bool {
		return f.Kind == kind && strings.Contains(f.Detail, text)
	})
}
