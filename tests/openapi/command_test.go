package openapi_test

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/internal/daemon/procs"
	"github.com/bmqelect/bmqelect/internal/testkit"
	"github.com/bmqelect/bmqelect/internal/testkit/nodes"
)

func TestMain(m *testing.M) { nodes.Main(m) }

// TestTheJSONOfEveryCommandIsDescribed asks a mesh of real processes with every command
// that can talk to one.
func TestTheJSONOfEveryCommandIsDescribed(t *testing.T) {
	t.Parallel()
	options := nodes.Quick()
	options["prefixes"] = "job/"
	s := nodes.LayOut(t, options, procs.Numbered(3)...)
	s.DemandToken()
	require.NoError(t, s.Start())
	run := func(command string) (out string, done bool) {
		args := append(strings.Fields(command), "--json", "--admin", s.Admins(),
			"--admin-token-file", s.TokenFile)
		out, errs, code := nodes.Run(t, args...)
		t.Logf("%s: %s", command, errs)
		return out, code == 0
	}
	var none string
	s.Eventually("there is a leader", func() bool {
		out, done := run("leader")
		if !done && out != "" {
			none = out
		}
		return done
	})
	require.Contains(t, none, `"leader": ""`)
	fits(t, "Leader", none)
	cmd := exec.Command(nodes.Binary, "watch", "--json", "--admin", s.Admins())
	var watched testkit.Buffer
	cmd.Stdout = &watched
	nodes.Launch(t, cmd)
	dir := t.TempDir()
	for _, c := range []struct{ schema, args string }{
		{"Leader", "leader"}, {"[Answer", "status"}, {"[Answer", "status --group default"},
		{"[Answer", "fault cut n2 n3"}, {"[Answer", "fault isolate n3"}, {"[Answer", "fault heal"},
		{"[Answer", "pause --for 1m"}, {"[Answer", "resume"}, {"[Answer", "set n2 --priority 1"},
		{"Report", "doctor"}, {"Status", "transfer"}, {"Status", "step-down"}, {"History", "history"},
		{"[Answer", "elections open job/1"}, {"[Answer", "status --limit 1"},
		{"[Answer", "elections close job/1"},
		{"Incident", "record-incident --seeds 1 -o " + dir},
	} {
		var out string
		s.Eventually(c.args, func() bool { // there may be no leader for a moment
			out, _ = run(c.args)
			return out != ""
		})
		fits(t, c.schema, out)
	}
	require.FileExists(t, filepath.Join(dir, "incident.yaml"))
	require.FileExists(t, filepath.Join(dir, "incident.html"))

	n3 := s.Named("n3")
	require.NoError(t, n3.Kill())
	var out string
	s.Eventually("a lease has passed", func() (done bool) {
		out, done = run("forget n3")
		return done
	})
	fits(t, "[Answer", out)
	shows := func(text string) func() bool {
		return func() bool { return strings.Contains(watched.String(), text) }
	}
	s.Eventually("the watch misses n3", shows(`"error":`))
	s.Eventually("the watch shows what happens", shows(`"to":`))
	require.NoError(t, n3.Start())
	s.Eventually("the watch shows how n3 is", shows(`"status":`))
	lines := watched.String()
	for line := range strings.Lines(lines[:strings.LastIndexByte(lines, '\n')+1]) {
		var fields map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &fields))
		schema := "Answer"
		if fields["reason"] != nil {
			schema = "Reset"
		}
		if fields["to"] != nil {
			schema = "Event"
		}
		if fields["fit"] != nil {
			schema = "ProbeEvent"
		}
		fits(t, schema, line)
	}
}

// fits checks JSON against a schema of the document; "[Answer" is a list of them.
func fits(t *testing.T, schema, text string) {
	t.Helper()
	doc, err := contract()
	require.NoError(t, err)
	var value any
	require.NoError(t, json.Unmarshal([]byte(text), &value), text)
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
