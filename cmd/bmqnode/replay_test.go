package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/internal/testkit/nodes"
)

const scenarios = nodes.Top + "/testdata/scenarios/"

// write writes a scenario file and returns its path.
func write(t *testing.T, name, text string) string {
	path := filepath.Join(t.TempDir(), name+".yaml")
	require.NoError(t, os.WriteFile(path,
		[]byte("name: "+name+"\nabout: a test\nsource: a test\n"+text), 0o600))
	return path
}

const briefCrash = `
nodes: [a, b, c]
elector: {initial_wait: 1600ms, max_random_wait: 500ms, scouting_result: 500ms, election_result: 500ms, heartbeat_broadcast: 250ms, heartbeat_miss_count: 6, lease: 1500ms}
begin: {leader: a, term: 5}
duration: 8s
timeline:
  - {at: 2s, crash: [a]}
  - {at: 4s, restart: [a]}
expect:
  - {to: 2s, leader: a, term: 5}
  - {from: 2s, leader_within: 2500ms}
  - {at: 7900ms, leader: [b, c], followers: [a]}
`

func TestExitStatusTellsWhatBecameOfAReplay(t *testing.T) {
	t.Parallel()
	good := write(t, "good", briefCrash)
	unmet := write(t, "unmet", briefCrash+"  - {to: 8s, leader: a}\n")
	wrong := write(t, "wrong", strings.Replace(briefCrash, "crash: [a]", "crash: [x]", 1))
	for name, c := range map[string]struct {
		args []string
		code int
		want string
	}{
		"all held":             {[]string{good}, 0, "ok   leader a in term 5 throughout 0s..2s"},
		"something did not":    {[]string{unmet}, 1, "FAIL leader a throughout 0s..8s"},
		"a wrong file":         {[]string{wrong}, 2, `wrong.yaml:10:22: `},
		"check of a good file": {[]string{"--check", good}, 0, "1 file without a mistake"},
		"check of a wrong one": {[]string{"--check", wrong}, 2, "wrong.yaml:10:22: "},
		"without scouting": {[]string{scenarios + "leader-ping-pong.yaml", "--scouting=false"}, 1,
			"FAIL leader changes exactly 0"},
		"many runs": {[]string{good, "--runs", "50"}, 0, "good: 50 of 50 runs held"},
	} {
		t.Run(name, func(t *testing.T) {
			stdout, stderr, code := nodes.Run(t, append([]string{"replay"}, c.args...)...)
			require.Equal(t, c.code, code, stdout+stderr)
			require.Contains(t, stdout+stderr, c.want)
		})
	}
}

// What is printed for a broken invariant is a command that shows it again.
func TestOneTypesWhatAReplayPrints(t *testing.T) {
	t.Parallel()
	reduced := []string{"--seed", "7", "--drop", "1,2", "--without", "c", "--until", "3s", "--format",
		"json"}
	args := append([]string{"replay", write(t, "brief", briefCrash)}, reduced...)
	first, stderr, _ := nodes.Run(t, args...)
	require.NotEmpty(t, first, stderr)
	second, _, _ := nodes.Run(t, args...)
	require.Equal(t, first, second)
}

func TestALiveReplayHoldsAndCleansUp(t *testing.T) {
	t.Parallel()
	cmd, tmp := liveReplay(t, write(t, "brief", briefCrash))
	stdout, stderr, code := nodes.Ended(t, cmd)
	require.Zero(t, code, stdout+stderr)
	require.Contains(t, stdout, "live,")
	require.Empty(t, leftovers(t, tmp))
}

func TestCtrlCEndsALiveReplayAndLeavesNothing(t *testing.T) {
	t.Parallel()
	cmd, tmp := liveReplay(t, scenarios+"leader-ping-pong.yaml")
	replay := nodes.Launch(t, cmd)
	require.Eventually(t, func() bool { return len(leftovers(t, tmp)) > 0 }, nodes.Patience,
		10*time.Millisecond, "its directory")
	time.Sleep(time.Second) // its processes are on their way up; any moment will do
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	require.Equal(t, 1, replay.Code(t))
	require.Contains(t, replay.Said.String(), "context canceled")
	require.Empty(t, leftovers(t, tmp))
}

// liveReplay is the command that replays a scenario live, and where its temporary
// files go.
func liveReplay(t *testing.T, scenario string) (cmd *exec.Cmd, tmp string) {
	tmp = t.TempDir()
	cmd = exec.Command(nodes.Binary, "replay", "--live", "--base-port", "19400", scenario)
	cmd.Env = append(os.Environ(), "TMPDIR="+tmp)
	return cmd, tmp
}

// leftovers are the files of live runs that are still there.
func leftovers(t *testing.T, tmp string) []os.DirEntry {
	files, err := os.ReadDir(tmp)
	require.NoError(t, err)
	return files
}
