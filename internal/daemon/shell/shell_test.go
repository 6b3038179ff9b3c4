package shell

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/internal/base/certs"
	"github.com/bmqelect/bmqelect/internal/daemon/console"
	"github.com/bmqelect/bmqelect/internal/daemon/procs"
)

func TestMistakesAreNamed(t *testing.T) {
	var good Config
	good.Register(pflag.NewFlagSet("mesh", pflag.ContinueOnError))
	require.NoError(t, good.Check(), "the defaults")
	for want, change := range map[string]func(*Config){
		"--nodes is 0, but must be 1 to 32":              func(c *Config) { c.Nodes = 0 },
		"--nodes is 33, but must be 1 to 32":             func(c *Config) { c.Nodes = 33 },
		`--profile is "nil", but must be one of article`: func(c *Config) { c.Profile = "nil" },
		"--base-port is 80, but must be 1024 to 30000":   func(c *Config) { c.BasePort = 80 },
	} {
		c := good
		change(&c)
		require.ErrorContains(t, c.Check(), want)
	}
}

func TestADirectoryForNoMeshIsNamed(t *testing.T) {
	dir := t.TempDir()
	file, half, other := filepath.Join(dir, "file"), filepath.Join(dir, "a"), filepath.Join(dir, "b")
	_, err := certs.Issue(filepath.Join(other, "pki"), "other", []string{"n1"}, time.Hour)
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Join(half, "pki"), 0o700))
	for _, path := range []string{file, filepath.Join(half, "pki", "ca.crt")} {
		require.NoError(t, os.WriteFile(path, nil, 0o600))
	}
	for path, why := range map[string]string{
		file: "not a directory", half: "ca.key: no such file", other: `is of cluster "other"`,
		"/dev/null/d": "not a directory",
	} {
		err := Run(t.Context(), Config{Nodes: 1, Dir: path, BasePort: 22_300})
		require.ErrorContains(t, err, "--dir "+path+" cannot hold a mesh: ")
		require.ErrorContains(t, err, why)
	}
	t.Setenv("TMPDIR", "/dev/null")
	require.ErrorContains(t, Run(t.Context(), Config{}), "set $TMPDIR, or name one with --dir")
}

// What is typed becomes a command of bmqnode, at the nodes that it concerns.
func TestTypedLinesAreRun(t *testing.T) {
	mesh, err := procs.New(procs.Config{
		Binary: "/nowhere", Names: procs.Numbered(3), Dir: t.TempDir(), BasePort: 22_100,
	})
	require.NoError(t, err)
	defer mesh.Stop(t.Context())
	var out bytes.Buffer
	var ran []string
	ended := false
	s := &shell{out: console.New(&out), procs: mesh, quit: func() { ended = true }}
	s.Command = func(_ context.Context, args ...string) (string, error) {
		ran = args
		return "done", nil
	}
	n2 := mesh.Nodes()[1].AdminAddr
	for _, c := range []struct {
		typed []string
		args  []string
		err   string
	}{
		{[]string{"cut", "n2", "n3"}, []string{"fault", "cut", "n2", "n3", "--admin", n2}, ""},
		{[]string{"cut", "n2-n3"}, []string{"fault", "cut", "n2", "n3", "--admin", n2}, ""},
		{[]string{"quit"}, nil, ""},
		{[]string{"isolate", "n2"}, []string{"fault", "isolate", "n2", "--admin", n2}, ""},
		{[]string{"transfer", "n3"}, []string{"transfer", "--to", "n3", "--admin", ""}, ""},
		{[]string{"step-down"}, []string{"step-down", "--admin", ""}, ""},
		{[]string{"status"}, []string{"status", "--admin", ""}, ""},
		{[]string{"fly"}, nil, `there is no command "fly"; help lists the commands`},
		{[]string{"stauts"}, nil, `there is no command "stauts"; did you mean status?`},
		{[]string{"cut", "n2"}, nil, "usage: cut NODE NODE: cut the link between two"},
		{[]string{"heal", "n2"}, nil, "usage: heal: heal every link"},
		{[]string{"exit"}, nil, ""},
		{[]string{"?"}, nil, ""},
		{[]string{"kill", "n7"}, nil, `there is no node "n7" here: the nodes are n1, n2, n3`},
		{[]string{"pause", "n1"}, nil, "node n1 does not run"},
		{[]string{"stop", "n1"}, nil, ""},
		{[]string{"help"}, nil, ""},
	} {
		ran = nil
		err := s.run(t.Context(), c.typed[0], c.typed[1:])
		require.Equal(t, c.args, ran, c.typed)
		if c.err == "" {
			require.NoError(t, err)
		} else {
			require.EqualError(t, err, c.err)
		}
	}
	require.True(t, ended)
	require.Contains(t, out.String(), "cut NODE NODE      cut the link between two\n")
	s.welcome("/dir")
	for line := range strings.Lines(out.String()) {
		require.LessOrEqual(t, len(strings.TrimSuffix(line, "\n")), 80, line)
	}
}
