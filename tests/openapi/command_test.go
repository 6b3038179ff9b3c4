package openapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/internal/daemon/procs"
	"github.com/bmqelect/bmqelect/internal/testkit"
)

// patience bounds one step that must happen.
var patience = testkit.Limit(time.Minute)

// TestTheJSONOfEveryCommandIsDescribed asks a mesh of real processes with every command
// that can talk to one.
func TestTheJSONOfEveryCommandIsDescribed(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "bmqnode")
	args := []string{"build", "-o", binary}
	if os.Getenv("RACE") != "" { // of make: what it has compiled so already serves here, too
		args = append(args, "-race")
	}
	build := exec.CommandContext(t.Context(), "go", append(args, "./cmd/bmqnode")...)
	build.Dir = "../.."
	text, err := build.CombinedOutput()
	require.NoError(t, err, "%s", text)
	token := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(token, []byte("correct-horse-battery-staple\n"), 0o600))
	mesh, err := procs.New(procs.Config{
		Binary: binary, Names: procs.Numbered(3), Dir: t.TempDir(), BasePort: 23_100,
		Options: map[string]any{"rehearsal": true, "initial-wait": "1600ms",
			"max-random-wait": "500ms", "admin-token-file": token,
			"scouting-result": "500ms", "election-result": "500ms", "heartbeat-broadcast": "250ms",
			"heartbeat-miss-count": 6, "lease": "1500ms"},
	})
	require.NoError(t, err)
	require.NoError(t, mesh.Start())
	t.Cleanup(func() { require.NoError(t, mesh.Stop(context.Background())) })
	at := mesh.Nodes()[0].AdminAddr + "," + mesh.Nodes()[1].AdminAddr + "," + mesh.Nodes()[2].AdminAddr

	var watched lockedLines
	watch := exec.CommandContext(t.Context(), binary, "watch", "--json", "--admin", at)
	watch.Stdout = &watched
	run := func(args ...string) (out []byte, err error) {
		args = append(args, "--json", "--admin", at, "--admin-token-file", token)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		cmd := exec.CommandContext(ctx, binary, args...)
		var errs bytes.Buffer
		cmd.Stderr = &errs
		out, err = cmd.Output()
		t.Logf("%s: %s", strings.Join(args, " "), &errs)
		return out, err
	}
	var none []byte
	require.Eventually(t, func() bool {
		out, err := run("leader")
		if err != nil && len(out) > 0 {
			none = out
		}
		return err == nil
	}, patience, 100*time.Millisecond)
	require.Contains(t, string(none), `"leader": ""`)
	fits(t, "Leader", none)
	require.NoError(t, watch.Start())
	for _, c := range []struct{ schema, args string }{
		{"Leader", "leader"}, {"[Answer", "status"}, {"[Answer", "status --group default"},
		{"[Answer", "fault cut n2 n3"}, {"[Answer", "fault isolate n3"}, {"[Answer", "fault heal"},
		{"[Answer", "pause --for 1m"}, {"[Answer", "resume"}, {"[Answer", "set n2 --priority 1"},
		{"Report", "doctor"}, {"Status", "transfer"}, {"Status", "step-down"}, {"History", "history"},
		{"Incident", "record-incident --seeds 1 -o " + t.TempDir()},
	} {
		var out []byte
		require.Eventually(t, func() bool { // there may be no leader for a moment
			out, err = run(strings.Fields(c.args)...)
			return len(out) > 0
		}, patience, 100*time.Millisecond, c.args)
		fits(t, c.schema, out)
	}
	n3, err := mesh.Node("n3")
	require.NoError(t, err)
	require.NoError(t, n3.Kill())
	var out []byte
	require.Eventually(t, func() bool { // until a lease has passed
		out, err = run("forget", "n3")
		return err == nil
	}, patience, 100*time.Millisecond)
	fits(t, "[Answer", out)
	require.Eventually(t, func() bool { return watched.has(`"error":`) && watched.has(`"to":`) },
		patience, 100*time.Millisecond)
	require.NoError(t, n3.Start())
	require.Eventually(t, func() bool { return watched.has(`"status":`) }, patience,
		100*time.Millisecond)
	for _, line := range watched.all() {
		var fields map[string]any
		require.NoError(t, json.Unmarshal(line, &fields))
		schema := "Answer"
		if fields["reason"] != nil {
			schema = "Reset"
		}
		if fields["to"] != nil {
			schema = "Event"
		}
		fits(t, schema, line)
	}
}

// fits checks JSON against a schema of the document; "[Answer" is a list of them.
func fits(t *testing.T, schema string, text []byte) {
	t.Helper()
	doc, err := contract()
	require.NoError(t, err)
	var value any
	require.NoError(t, json.Unmarshal(text, &value), "%s", text)
	all := []any{value}
	name, list := strings.CutPrefix(schema, "[")
	if list {
		all = value.([]any)
		require.NotEmpty(t, all)
	}
	for _, one := range all {
		require.NoError(t, doc.Components.Schemas[name].Value.VisitJSON(one), "%s: %s", schema, text)
	}
}

// lockedLines are written by a process and read by the test.
type lockedLines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lockedLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

// all are the lines that are complete.
func (l *lockedLines) all() (lines [][]byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := bytes.Clone(l.buf.Bytes())
	return bytes.Split(text[:max(bytes.LastIndexByte(text, '\n'), 0)], []byte("\n"))
}

func (l *lockedLines) has(text string) bool {
	return bytes.Contains(bytes.Join(l.all(), []byte("\n")), []byte(text))
}
