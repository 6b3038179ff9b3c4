package main_test

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/internal/testkit/nodes"
)

// configOf writes the file of a node on ports that the system picks, with more lines.
func configOf(t *testing.T, dir, node string, lines ...string) (path string) {
	t.Helper()
	text := "node: " + node + "\nvoters: [a, b, c]\ndata-dir: " + filepath.Join(dir, "data-"+node) + `
join: [127.0.0.1:1]
gossip-addr: 127.0.0.1:0
mesh-addr: 127.0.0.1:0
groups: [jobs]
` + strings.Join(lines, "\n")
	if !strings.Contains(text, "admin-addr:") {
		text += "\nadmin-addr: 127.0.0.1:0"
	}
	path = filepath.Join(dir, node+".yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestRunCheckNamesEveryProblem(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "data-file"), nil, 0o600))
	a, b, c := configOf(t, dir, "a"), configOf(t, dir, "b"), configOf(t, dir, "c")
	other, again := t.TempDir(), t.TempDir()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, free.Close())
	foreign := configOf(t, t.TempDir(), "a", "admin-addr: 192.0.2.7:7402", "insecure: true")
	wider := configOf(t, t.TempDir(), "b", "quorum: 4")
	text, err := os.ReadFile(wider)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(wider, bytes.Replace(text, []byte("b, c]"), []byte("b, c, d]"), 1),
		0o600))
	joins := configOf(t, t.TempDir(), "d")
	text, err = os.ReadFile(joins)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(joins, bytes.Replace(text, []byte("voters: [a, b, c]\n"), nil, 1),
		0o600))
	for name, c := range map[string]struct {
		args []string
		want []string // one for each line
	}{
		"one file":    {[]string{a}, nil},
		"with a flag": {[]string{"--config", a, "--lease", "900ms"}, nil},
		"three files": {[]string{a, b, c}, nil},
		"no such file": {
			[]string{"/nowhere.yaml"}, []string{"/nowhere.yaml: no such file"},
		},
		"a tab": {
			[]string{configOf(t, t.TempDir(), "a", "\tlease: 1s")},
			[]string{"a.yaml:8:1: line 8: tabs cannot indent YAML, use spaces\n"},
		},
		"a key twice": {
			[]string{configOf(t, t.TempDir(), "a", "node: b")},
			[]string{`a.yaml:8:1: mapping key "node" already defined at [1:1]`},
		},
		"joins itself": {
			[]string{"--config", a, "--gossip-addr", free.Addr().String(), "--join", free.Addr().String()},
			[]string{"--join is " + free.Addr().String() + ", this node's own address"},
		},
		"joins itself and another": {
			[]string{"--config", a, "--gossip-addr", free.Addr().String(), "--join",
				free.Addr().String() + ",127.0.0.1:1"}, nil,
		},
		"files of other machines": {[]string{"--compare", foreign, b, c}, nil},
		"files of other machines that differ": {
			[]string{"--compare", foreign, configOf(t, t.TempDir(), "b", "lease: 900ms")},
			[]string{"--lease is 900ms, but 1.4s in " + foreign},
		},
		"several mistakes": {
			[]string{configOf(t, other, "d", "lease: soon", "prio: 1", "log-level: loud")},
			[]string{`d.yaml:8:8: option "lease"`, `d.yaml:9:1: there is no option "prio"`,
				"--log-level is"},
		},
		"settings differ": {
			[]string{a, configOf(t, other, "b", "lease: 900ms", "cluster: wasps", "quorum: 3")},
			[]string{
				"--cluster is wasps, but bmqelect in " + a, "--lease is 900ms, but 1.4s in " + a,
				"--quorum is 3, but a majority in " + a,
			},
		},
		"defaults that are spelled out": {[]string{a, configOf(t, t.TempDir(), "b", "quorum: 2",
			"lease: 1.4s")}, nil},
		"prefixes differ": {[]string{a, configOf(t, t.TempDir(), "b", "prefixes: [job/]")},
			[]string{"--prefixes is [job/], but [] in " + a}},
		"voters differ":           {[]string{a, wider}, []string{"--voters is [a b c d], but [a b c] in " + a}},
		"no voters beside others": {[]string{joins, a, b}, nil},
		"no voters, and others differ": {[]string{joins, a, wider},
			[]string{"--voters is [a b c d], but [a b c] in " + a}},
		"one name twice": {[]string{a, configOf(t, again, "a")},
			[]string{"--node is a, as in " + a}},
		"a port that is taken": {
			[]string{configOf(t, again, "b", "admin-addr: "+taken.Addr().String())},
			[]string{"address already in use; stop the process"},
		},
		"one port twice": {
			[]string{"--config", a, "--mesh-addr", free.Addr().String(), "--admin-addr",
				strings.Replace(free.Addr().String(), "127.0.0.1", "localhost", 1)},
			[]string{"--admin-addr: listen tcp"},
		},
		"one address twice": {
			[]string{"--config", a, "--mesh-addr", free.Addr().String(), "--admin-addr",
				free.Addr().String()},
			[]string{"but must be another address than --mesh-addr"},
		},
		"an address of another machine": {
			[]string{configOf(t, again, "c", "admin-addr: 192.0.2.7:7402", "insecure: true")},
			[]string{"docs/errors.md#address-foreign"},
		},
		"an admin side at a socket": {
			[]string{configOf(t, other, "c", "admin-addr: unix:///run/bmqnode/http")}, nil,
		},
		"a name that leads nowhere": {
			[]string{"--config", a, "--join", "nowhere.invalid:7400"},
			[]string{"--join: lookup nowhere.invalid"},
		},
		"a directory that is a file": {
			[]string{"--config", a, "--data-dir", b}, []string{"docs/errors.md#data-dir-unusable"},
		},
		"a token file that everybody may read": {
			[]string{"--config", a, "--admin-token-file", "/dev/null"},
			[]string{"--admin-token-file: token file"},
		},
	} {
		stdout, stderr, code := nodes.Run(t, append([]string{"run", "--check"}, c.args...)...)
		if len(c.want) == 0 {
			require.Zero(t, code, "%s: %s%s", name, stdout, stderr)
			require.True(t, strings.HasSuffix(stdout, "no problem found\n"), name)
			require.Equal(t, c.args[0] != joins, stdout == "no problem found\n", stdout)
			continue
		}
		require.Equal(t, 1, code, "%s: %s%s", name, stdout, stderr)
		require.Contains(t, stderr, fmt.Sprintf("%d problem", len(c.want)), "%s:\n%s", name, stdout)
		for _, want := range c.want {
			require.Contains(t, stdout, want, name)
		}
	}
	stdout := nodes.Does(t, "run", "--check", "--config", a, "--min-term", "37")
	require.Equal(t, a+": --min-term is 37: no term is below it\nno problem found\n", stdout)
	stdout = nodes.Does(t, "run", "--check", a, configOf(t, other, "b", "min-term: 9"), c)
	require.Contains(t, stdout, "b.yaml: --min-term is 9: no term is below it\n")
	stdout = nodes.Does(t, "run", "--check", configOf(t, t.TempDir(), "d"))
	require.Contains(t, stdout, "d.yaml: observer: d is not among the voters a, b, c: "+
		"this node will have no vote\nno problem found\n")
	stdout = nodes.Does(t, "run", "--check", joins)
	require.Equal(t, joins+": no voters: this node learns them from those that it joins, and has no "+
		"vote before 'bmqnode voters add d'\nno problem found\n", stdout)
	_, stderr, code := nodes.Run(t, "run", a)
	require.Equal(t, 2, code, stderr)
	nodes.Fails(t, 2, "--check takes files or flags, not both", "run", "--check", "--lease", "1s", a)
	nodes.Fails(t, 2, "--compare goes with --check and two files or more", "run", "--check", "--compare", a)
}

func TestRunCheckOfANodeThatRunsShowsItsRealFaults(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text := "node: a\nvoters: [a, b, c]\ndata-dir: " + filepath.Join(dir, "data") + "\n"
	for i, flag := range []string{"gossip-addr", "mesh-addr", "admin-addr"} {
		text += fmt.Sprintf("%s: 127.0.0.1:%d\n", flag, 21_930+i)
	}
	file := filepath.Join(dir, "a.yaml")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	alone := ": no address to join: this node waits until another joins it\n"
	stdout := nodes.Does(t, "run", "--check", "--config", file)
	require.Equal(t, file+alone+"no problem found\n", stdout)

	nodes.Launch(t, exec.Command(nodes.Binary, "run", "--config", file))
	require.Eventually(t, func() bool {
		_, _, code := nodes.Run(t, "status", "--admin", "127.0.0.1:21932")
		return code == 0
	}, nodes.Patience, 50*time.Millisecond)
	stdout = nodes.Does(t, "run", "--check", "--config", file)
	require.Contains(t, stdout, "a.yaml: node a runs now")
	require.Equal(t, 3, strings.Count(stdout, "\n"), stdout)
	stdout, _, code := nodes.Run(t, "run", "--check", "--config", file, "--node", "b")
	require.Equal(t, 1, code)
	require.Contains(t, stdout, "in use")
	require.Equal(t, 1, strings.Count(stdout, "--gossip-addr:"), "TCP and UDP are one: %s", stdout)
	require.Equal(t, 4, strings.Count(stdout, "\n"), stdout)
}
