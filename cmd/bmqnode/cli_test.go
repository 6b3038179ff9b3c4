package main_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/testkit/nodes"
)

func TestMistakesAreNamedAndExitWith2(t *testing.T) {
	t.Parallel()
	file := func(text string) string {
		path := filepath.Join(t.TempDir(), "c.yaml")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	open := file("correct-horse-battery-staple\n")
	require.NoError(t, os.Chmod(open, 0o644))
	node := []string{"run", "--node", "a", "--voters", "a", "--data-dir", t.TempDir()}
	for name, c := range map[string]struct {
		args []string
		want []string
	}{
		"token that all may read": {append(node, "--admin-token-file", open),
			[]string{"fix it with: chmod 0600 " + open}},
		"the same for a client": {[]string{"transfer", "--admin-token-file", open},
			[]string{"fix it with: chmod 0600 " + open}},
		"no such token": {append(node, "--admin-token-file", "/nowhere"),
			[]string{"open /nowhere: no such file"}},
		"meta that nobody may be told": {append(node, "--meta", "two\nlines"),
			[]string{`--meta is "two\nlines", but must be printable text of at most 512 `}},
		"no margin to kill": {[]string{"exec", "--node", "a", "--voters", "a", "--data-dir",
			t.TempDir(), "--kill-margin", "2s", "--", "true"},
			[]string{"--kill-margin is 2s, but must be positive and shorter"}},
		"no command": {[]string{"exec", "--node", "a", "--voters", "a", "--data-dir", t.TempDir()},
			[]string{"no command to run; it follows the flags, after --"}},
		"a log that cannot be": {[]string{"exec", "--node", "a", "--voters", "a", "--data-dir",
			t.TempDir(), "--log-file", "/nowhere/log", "--log-level", "warn", "--", "true"},
			[]string{"--log-file: open /nowhere/log"}},
		"a pause of no length": {[]string{"pause", "--for", "0s", "--admin", "127.0.0.1:1"},
			[]string{"must be positive and at most 24h"}},
		"a pause of too long": {[]string{"pause", "--for", "25h", "--admin", "127.0.0.1:1"},
			[]string{"must be positive and at most 24h"}},
		"no time for the doctor": {[]string{"doctor", "--timeout", "0s"},
			[]string{"--timeout is 0s, but must be positive"}},
		"a page too long": {[]string{"status", "--limit", "5000"},
			[]string{`limit is "5000", but must be a number from 1 to 1000`}},
		"one election and many": {[]string{"status", "--group", "jobs", "--prefix", "j"},
			[]string{"group names one election: leave prefix, after, limit, top out"}},
		"no kind of events": {[]string{"watch", "--kind", "transition,foo"},
			[]string{`kind is "foo", but must be one of transition, record, `}},
		"no flag of the doctor": {[]string{"doctor", "--all"}, []string{"unknown flag: --all"}},
		"nothing given": {[]string{"run"}, []string{"--node is", "--voters is empty",
			"--data-dir is empty"}},
		"mistyped command with a flag that it would have": {[]string{"record", "gt", "--group", "x"},
			[]string{`no command "gt"; did you mean get or put?; see 'bmqnode record --help'`}},
		"mistyped command with a flag of another": {[]string{"voters", "rmove", "x", "--dry-run"},
			[]string{`no command "rmove"; did you mean remove?`}},
		"mistyped command": {[]string{"statsu"}, []string{`no command "statsu"; did you mean status?`}},
		"mistyped flag": {[]string{"run", "--nodes", "3"}, []string{
			"unknown flag: --nodes (did you mean --node?); see 'bmqnode run --help'"}},
		"unlike any flag":  {[]string{"mesh", "--prio", "3"}, []string{"flag: --prio; see 'bmqnode"}},
		"unknown letter":   {[]string{"lab", "-x"}, []string{"flag: 'x' in -x; see 'bmqnode"}},
		"surplus argument": {[]string{"status", "n1"}, []string{"n1"}},
		"no such file": {[]string{"run", "--config", "/nowhere.yaml"},
			[]string{"/nowhere.yaml: no such file"}},
		"key of no option": {[]string{"run", "--config", file("node: a\nprio: 3\n")},
			[]string{`c.yaml:2:1: there is no option "prio"`}},
		"mesh of none": {[]string{"mesh", "--nodes", "0"},
			[]string{"--nodes is 0, but must be 1 to 32"}},
		"mesh of five": {[]string{"mesh", "--nodes", "five"},
			[]string{`--nodes is "five", but must be a whole number; see 'bmqnode mesh --help'`}},
		"no duration": {[]string{"leader", "--wait", "30"},
			[]string{`--wait is "30", but must be a duration such as 1500ms or 2s`}},
		"mesh of foo": {[]string{"mesh", "foo"},
			[]string{`"foo" is one word too many: 'bmqnode mesh' takes flags only`}},
		"two heirs":  {[]string{"transfer", "n1", "--to", "n2"}, []string{"say NODE or --to, not both"}},
		"half a cut": {[]string{"fault", "cut", "n1"}, []string{"accepts 2 arg(s)"}},
		"no time": {[]string{"record-incident", "--from", "last night"},
			[]string{`--from is "last night", but must be a time such as`}},
		"an end before the beginning": {[]string{"record-incident", "--from", "2026-01-02T03:00:00Z",
			"--to", "2026-01-02T02:00:00Z"}, []string{"but must begin before its end"}},
		"no LSN": {[]string{"record", "put", "--if-match", "5", "/dev/null"},
			[]string{`"5" for "--if-match" flag: lsn: "5": no dot; want term.counter, such as 5.2`}},
		"nobody to add": {[]string{"voters", "add"},
			[]string{"add NODE: accepts 1 arg(s), received 0; see 'bmqnode voters add --help'"}},
		"too many in place of one": {[]string{"voters", "replace", "a", "b", "c"},
			[]string{"accepts between 1 and 2 arg(s)"}},
		"no command for voters": {[]string{"voters", "ad", "d"},
			[]string{`there is no command "ad"; did you mean add?; see 'bmqnode voters --help'`}},
		"no seeds": {[]string{"record-incident", "--seeds", "0"}, []string{"--seeds is 0, but"}},
	} {
		t.Run(name, func(t *testing.T) {
			stdout, stderr, code := nodes.Run(t, c.args...)
			require.Equal(t, 2, code, stderr)
			require.Empty(t, stdout)
			for _, want := range c.want {
				require.Contains(t, stderr, want)
			}
		})
	}
}

func TestTheHelpOfEveryCommandFitsATerminal(t *testing.T) {
	t.Parallel()
	// Each help lists the commands below it; those of cobra are not ours.
	listed := regexp.MustCompile(`(?m)^  ([a-z-]+) +[A-Z]`)
	commands := [][]string{nil}
	var texts, described []string
	for len(commands) > 0 {
		command := commands[0]
		commands = commands[1:]
		described = append(described, strings.Join(append([]string{"bmqnode"}, command...), " "))
		stdout := nodes.Does(t, append(command, "--help")...)
		for line := range strings.SplitSeq(stdout, "\n") {
			require.LessOrEqual(t, len(line), 80, "%s: %s", command, line)
			require.NotContains(t, line, "(default 0.0)", "%s: it is none", command)
		}
		_, below, _ := strings.Cut(stdout, "Available Commands:")
		below, _, _ = strings.Cut(below, "Flags:")
		for _, name := range listed.FindAllStringSubmatch(below, -1) {
			if name[1] != "completion" && name[1] != "help" {
				commands = append(commands, append(slices.Clone(command), name[1]))
			}
		}
		if command == nil {
			require.Greater(t, len(commands), 12, "the list is not read right")
		}
	}
	text, err := os.ReadFile("help.txt")
	require.NoError(t, err)
	for _, m := range regexp.MustCompile(`(?m)^# (.*)\n[A-Z]`).FindAllStringSubmatch(string(text), -1) {
		texts = append(texts, m[1])
	}
	require.ElementsMatch(t, described, texts, "each command has a text in help.txt")
}

func TestTheShellIsOfferedWhatAFlagTakes(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"run --profile ":                     "article\nblazingmq\nlan\nwan\n:4\n",
		"exec --restart ":                    "never\non-failure\nalways\n:4\n",
		"replay --format ":                   "text\njson\nhtml\nsvg\n:4\n",
		"run --lease ":                       ":4\n",  // nothing, and no files
		"run --data-dir ":                    ":16\n", // folders
		"run --config ":                      ":0\n",  // files
		"transfer --admin 127.0.0.1:1 --to ": ":4\n",  // no node answers
		"record-incident --data-dir ":        ":16\n",
		"record put ":                        ":0\n",
	} {
		stdout := nodes.Does(t, append([]string{"__complete"}, strings.Split(args, " ")...)...)
		require.Equal(t, want, stdout, args)
	}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		stdout := nodes.Does(t, "completion", shell)
		require.Contains(t, stdout, "__complete")
	}
}

func TestTheVersionIsToldInTwoWays(t *testing.T) {
	t.Parallel()
	for _, ask := range []string{"version", "--version"} {
		stdout := nodes.Does(t, ask)
		require.Regexp(t, `^bmqnode \S+, go1\S+ [a-z]+/[a-z0-9]+\n$`, stdout)
	}
}

func TestWhatCannotBeDoneExitsWith1(t *testing.T) {
	t.Parallel()
	stderr := nodes.Fails(t, 1, "no node answers", "status", "--admin", "127.0.0.1:1")
	require.Contains(t, stderr, "connection refused")

	nodes.Fails(t, 1, "admin address 192.0.2.1:1", "run", "--node", "a", "--voters", "a", "--data-dir",
		t.TempDir(),
		"--insecure", "--admin-addr", "192.0.2.1:1")
}

func TestFlagsWinOverTheFile(t *testing.T) {
	t.Parallel()
	s := nodes.Play(t, 1, map[string]any{"priority": 1})
	s.Agree(s.Nodes(), nil)
	n := s.Nodes()[0]
	// The node runs: a second process on its directory must fail, whichever
	// ports it has, and before it does anything.
	stderr := nodes.Fails(t, 1, "data directory is in use", "run", "--config", n.ConfigFile,
		"--admin-addr", "127.0.0.1:0", "--gossip-addr", "127.0.0.1:0", "--mesh-addr", "127.0.0.1:0")
	require.Contains(t, stderr, n.Dir)
	// Without the flags it meets the taken port first.
	stderr = nodes.Fails(t, 1, n.AdminAddr, "run", "--config", n.ConfigFile)
	require.Contains(t, stderr, "address already in use")
}

func TestStatusWatchAndTransferOfARunningMesh(t *testing.T) {
	t.Parallel()
	s, first := nodes.Elected(t, 3)
	admin := s.Others(first.Leader)[0].AdminAddr

	stdout := nodes.Does(t, "status", "--admin", admin)
	for _, want := range []string{"NODE", "LEADER", "LINKS", "n1 ", "n2 ", "n3 "} {
		require.Contains(t, stdout, want)
	}
	stdout = nodes.Does(t, "status", "--json", "--admin", admin)
	var answers []struct {
		Node   cluster.NodeID
		Status cluster.Status
	}
	require.NoError(t, json.Unmarshal([]byte(stdout), &answers))
	require.Len(t, answers, 3)
	for _, a := range answers {
		require.Equal(t, first.Leader, a.Status.Groups[0].Leader)
		require.Equal(t, a.Node == first.Leader, a.Status.Groups[0].Leading)
	}

	watch := nodes.Launch(t, exec.Command(nodes.Binary, "watch", "--admin", admin))
	shows := func(text string) func() bool {
		return func() bool { return strings.Contains(watch.Said.String(), text) }
	}
	s.Eventually("the watch is on", shows("watching"))
	s.Eventually("it shows how things are, before anything happens", shows("FOLLOWER in term "))

	to := cluster.NodeID(s.Others(first.Leader)[1].Name)
	s.Eventually("the watch shows a transfer", func() bool {
		// The first one may come before all streams are open.
		g := s.Agree(s.Nodes(), nil)
		if g.Leader == to {
			to = cluster.NodeID(s.Others(to)[0].Name)
		}
		stdout = nodes.Does(t, "transfer", string(to), "--admin", admin)
		require.Contains(t, stdout, string(to)+" leads in term")
		return shows("ELECTED")()
	})
	restarted := s.Others(to)[0]
	require.NoError(t, restarted.Kill())
	require.NoError(t, restarted.Start())
	s.Eventually("the watch says what it cannot know", shows("events before it are gone; now"))
	require.NoError(t, watch.Process.Signal(os.Interrupt))
	require.Zero(t, watch.Code(t), "Ctrl-C ends it in good order")
	s.Agree(s.Nodes(), nil)

	nodes.Fails(t, 1, "it leads already", "transfer", "--to", string(to), "--admin", admin)
	nodes.Fails(t, 1, `"n9": not one of the voters`, "transfer", "--to", "n9", "--admin", admin)
}
