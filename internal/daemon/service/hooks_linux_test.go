package service

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/internal/testkit"
)

func TestScriptsThatFailOrHangHoldUpNothing(t *testing.T) {
	t.Parallel()
	child := filepath.Join(t.TempDir(), "child")
	for name, c := range map[string]struct{ script, output, err string }{
		"fails": {"echo too bad; exit 4", "too bad", "exit status 4"},
		"hangs": {"sleep 60 & echo $! >" + child + "; wait", "",
			"told to end"},
		"leaves one that is silent": {"(sleep 5 &)", "", ""},
		"says too much": {"yes | head -c 100000; echo end", strings.Repeat("y\n", 2046) +
			"end", ""},
		"has its variables": {"echo $BMQ_EVENT", "leader", ""},
	} {
		t.Run(name, func(t *testing.T) {
			limit := 4 * time.Second // less than what is left behind goes on
			if name == "hangs" {
				limit = 300 * time.Millisecond
			}
			env := append(os.Environ(), "BMQ_EVENT=leader")
			ctx, cancel := context.WithTimeoutCause(t.Context(), limit, errors.New("told to end"))
			defer cancel()
			output, err := runScript(ctx, c.script, env)
			require.Equal(t, c.output, output)
			if c.err == "" {
				require.NoError(t, err)
			} else {
				require.EqualError(t, err, c.err)
			}
		})
	}
	pid, err := os.ReadFile(child)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		stat, err := os.ReadFile("/proc/" + strings.TrimSpace(string(pid)) + "/stat")
		return err != nil || strings.Contains(string(stat), ") Z ")
	}, testkit.Limit(30*time.Second), 5*time.Millisecond, "what a hook waited for is killed with it")
}
