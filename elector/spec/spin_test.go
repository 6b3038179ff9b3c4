package spec

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestSpin lets the model checker SPIN search election.pml at random, for SPIN_TIME at each
// depth. It is a second opinion: the model shares no code with the elector. It finds what a rule
// is there for if the rule is broken.
func TestSpin(t *testing.T) {
	for _, tool := range []string{"spin", "gcc"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is not installed", tool)
		}
	}
	limit := time.Second
	v, long := os.LookupEnv("SPIN_TIME")
	if long {
		var err error
		limit, err = time.ParseDuration(v)
		require.NoError(t, err, "SPIN_TIME is a duration")
	}
	for _, c := range []struct{ name, broken string }{
		{"the protocol", ""},
		{"a quorum of one", "-DQUORUM=1"},
		{"a promise that is a tick short", "-DPROMISE=1"},
		{"no embargo", "-DEMBARGO=0"},
		{"a crash forgets what was reserved", "-DFLOOR=entered[i]"},
		{"votes back a fresh lease", "-DVOTEAGE=0"},
		{"acknowledgements back a fresh lease", "-DACKAGE=0"},
		{"bound voters vote", "-DBOUND=0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if !long && c.broken != "" && c.broken != "-DEMBARGO=0" {
				t.Skip("SPIN_TIME is not set: see make explore")
			}
			t.Parallel()
			check := compiled(t, c.broken)
			if c.broken == "" {
				for _, depth := range []int{150, 250, 1000, 10_000} {
					out := check(depth, 1, limit)
					require.NotContains(t, out, "assertion violated")
					t.Logf("depth %d: %s", depth, states(out))
				}
				return
			}
			for seed := 1; ; seed++ { // until it is found: a busy machine only takes longer
				out := check(250, seed, time.Minute)
				if strings.Contains(out, "assertion violated") {
					return
				}
				require.Less(t, seed, 5, "SPIN does not see the fault")
			}
		})
	}
}

// compiled compiles the model, and returns how to search it to a depth.
func compiled(t *testing.T, broken string) func(depth, seed int, limit time.Duration) string {
	dir := t.TempDir()
	model, err := filepath.Abs("election.pml")
	require.NoError(t, err)
	run := func(name string, args ...string) {
		cmd := exec.Command(name, args...)
		cmd.Dir = dir
		text, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", text)
	}
	args := []string{"-a", model}
	if broken != "" {
		args = append([]string{broken}, args...)
	}
	run("spin", args...)
	run("gcc", "-O2", "-w", "-DSAFETY", "-DCOLLAPSE", "-DT_RAND", "-DP_RAND", "-o", "pan", "pan.c")
	return func(depth, seed int, limit time.Duration) string {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		cmd := exec.CommandContext(ctx, "./pan", fmt.Sprintf("-m%d", depth), fmt.Sprintf("-RS%d", seed))
		cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // it tells how far it is
		cmd.Dir = dir
		out, _ := cmd.CombinedOutput() // its status says nothing more
		return string(out)
	}
}

// states is how many SPIN has visited.
func states(out string) string {
	for line := range strings.Lines(out) {
		if strings.Contains(line, "states, stored") {
			return strings.TrimSpace(line)
		}
	}
	return "?"
}
