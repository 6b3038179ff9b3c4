package main_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/internal/testkit/nodes"
)

// TestFilesThatAreNoneAreNamed gives commands files that never end, that wait for a
// writer, or that take the YAML parser minutes. Each command ends by itself.
func TestFilesThatAreNoneAreNamed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	fifo, brackets, used := filepath.Join(dir, "fifo"), filepath.Join(dir, "brackets.yaml"),
		filepath.Join(dir, "used")
	require.NoError(t, syscall.Mkfifo(fifo, 0o600))
	require.NoError(t, os.WriteFile(brackets, []byte("voters: "+strings.Repeat("[", 100_000)), 0o600))
	require.NoError(t, os.Mkdir(used, 0o700))
	require.NoError(t, syscall.Mkfifo(filepath.Join(used, "state.db"), 0o600))
	node := []string{"run", "--node", "a", "--voters", "a", "--gossip-addr", "127.0.0.1:0",
		"--mesh-addr", "127.0.0.1:0", "--admin-addr", ""}
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"a pipe for a configuration": {[]string{"run", "--config", fifo}, "--config: " + fifo +
			" is no regular file, but a pipe"},
		"the check of one": {[]string{"run", "--check", fifo},
			"is no regular file, but a"},
		"an endless configuration": {[]string{"run", "--config", "/dev/zero"},
			"/dev/zero is no regular file, but a device"},
		"a configuration of brackets": {[]string{"run", "--config", brackets},
			"at most 1048576 bytes and 32 lists or mappings within each other are read"},
		"a pipe for a token": {append(node, "--data-dir", filepath.Join(dir, "new"),
			"--admin-token-file", fifo), "is no regular file, but a pipe"},
		"a pipe for a node's state": {append(node, "--data-dir", used),
			"state.db is no regular file, but a pipe"},
		"a pipe that nobody reads, to log": {append(node, "--data-dir", filepath.Join(dir, "new"),
			"--log-file", fifo), "--log-file: open " + fifo},
		"a pipe for a scenario": {[]string{"replay", fifo}, "is no regular file, but a pipe"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), nodes.Patience)
			defer cancel()
			cmd := exec.CommandContext(ctx, nodes.Binary, c.args...)
			stdout, stderr, code := nodes.Ended(t, cmd)
			require.Positive(t, code, "%s: it did not end by itself: %s", ctx.Err(), stderr)
			require.Contains(t, stdout+stderr, c.want)
		})
	}
}
