package main_test

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/internal/testkit"
	"github.com/bmqelect/bmqelect/internal/testkit/nodes"
	"github.com/bmqelect/bmqelect/lsn"
)

// execution is a bmqnode whose log goes to a file, so that its stderr is the command's.
type execution struct {
	*nodes.Launched
	t         testing.TB
	cmd       *exec.Cmd
	out, errs testkit.Buffer
	log       string // file
}

// prepare makes a command of bmqnode ready.
func prepare(t testing.TB, command string, args ...string) *execution {
	x := &execution{t: t, log: filepath.Join(t.TempDir(), "log")}
	x.cmd = exec.Command(nodes.Binary, append([]string{command, "--log-file", x.log}, args...)...)
	x.cmd.Stdout, x.cmd.Stderr = &x.out, &x.errs
	x.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	return x
}

// beginExec makes a `bmqnode exec` ready.
func beginExec(t testing.TB, flags, command []string) *execution {
	return prepare(t, "exec", slices.Concat(flags, []string{"--"}, command)...)
}

func startExec(t testing.TB, flags, command []string) *execution {
	x := beginExec(t, flags, command)
	x.start()
	return x
}

func (x *execution) start() {
	x.t.Cleanup(func() {
		if log := x.said(); x.t.Failed() {
			x.t.Logf("%s\n%s%s", x.cmd.Args, log, &x.errs)
		}
	})
	x.Launched = nodes.Launch(x.t, x.cmd)
}

func (x *execution) signal(s syscall.Signal) { _ = x.cmd.Process.Signal(s) }

func (x *execution) code() int { return x.Code(x.t) }

// said is its log.
func (x *execution) said() string {
	text, _ := os.ReadFile(x.log) // there is none if no node was started
	require.NotContains(x.t, string(text), "DATA RACE")
	return string(text)
}

func (x *execution) eventually(what string, cond func() bool) {
	x.t.Helper()
	require.Eventually(x.t, cond, nodes.Patience, 5*time.Millisecond, what)
}

func (x *execution) prints(text string) {
	x.t.Helper()
	x.eventually(text, func() bool { return strings.Contains(x.out.String(), text) })
}

func TestExecPassesOnOutputAndExitStatus(t *testing.T) {
	t.Parallel()
	plain := filepath.Join(t.TempDir(), "plain")
	require.NoError(t, os.WriteFile(plain, nil, 0o600))
	count := "n=$(($(cat count 2>/dev/null || echo 0) + 1)); echo $n >count; "
	for name, c := range map[string]struct {
		flags     string
		script    []string
		code      int
		out, errs string
	}{
		"success":           {"", sh("echo out; echo err >&2"), 0, "out\n", "err\n"},
		"failure":           {"", sh("echo out; exit 3"), 3, "out\n", ""},
		"death by a signal": {"", sh("kill -9 $$"), 137, "", ""},
		"not found": {"", []string{"no-such-command"}, 127, "",
			"executable file not found"},
		"not executable": {"", []string{plain}, 126, "", "permission denied"},
		"directory":      {"", []string{"/dev"}, 126, "", "/dev"},
		"failure until it is well": {"--restart on-failure --restart-delay 10ms",
			sh(count + "echo $n; [ $n = 3 ]"), 0, "1\n2\n3\n", ""},
		"no stdin":             {"", []string{"cat"}, 0, "", ""},
		"stdin":                {"--pass-stdin", []string{"cat"}, 0, "some input", ""},
		"flags of the command": {"", []string{"echo", "--node", "x"}, 0, "--node x\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := beginExec(t, append(nodes.SoleFlags(t), strings.Fields(c.flags)...), c.script)
			x.cmd.Dir, x.cmd.Stdin = t.TempDir(), strings.NewReader("some input")
			x.start()
			require.Equal(t, c.code, x.code(), c.errs)
			require.Equal(t, c.out, x.out.String())
			if c.code < 126 || c.code > 127 {
				require.Equal(t, c.errs, x.errs.String(), "stderr is the command's own")
				require.Regexp(t, "(?s)command started.*command ended", x.said())
				return
			}
			require.Contains(t, x.errs.String(), c.errs)
			require.Empty(t, x.said(), "no node was started")
		})
	}
}

func sh(script string) []string { return []string{"sh", "-c", script} }

func TestExecRestartsAlwaysInOneLeadershipWithNewTokens(t *testing.T) {
	t.Parallel()
	x := startExec(t, append(nodes.SoleFlags(t), "--restart", "always", "--restart-delay", "10ms"),
		sh("echo $BMQ_LSN"))
	x.eventually("five starts", func() bool { return strings.Count(x.out.String(), "\n") >= 5 })
	x.signal(syscall.SIGTERM)
	require.Zero(t, x.code())
	var last lsn.LSN
	for _, text := range strings.Fields(x.out.String()) {
		next, err := lsn.Parse(text)
		require.NoError(t, err)
		require.Positive(t, next.Compare(last), "%s after %s", next, last)
		if last != (lsn.LSN{}) {
			require.Equal(t, last.Term, next.Term)
		}
		last = next
	}
}

func TestExecTellsTheCommandWhatItIsPartOf(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(nodes.ShortDir(t), "admin.sock")
	x := beginExec(t, append(nodes.SoleFlags(t), "--group", "jobs", "--cluster", "c1", "--meta",
		"http://a.example", "--admin-socket", socket), sh("env | grep ^BMQ_ | sort; echo .; sleep 60"))
	x.cmd.Env = append(os.Environ(), "BMQ_LEADER=of another bmqnode", "BMQ_MINE=kept")
	x.start()
	x.prints("\n.\n")
	env := map[string]string{}
	for _, line := range strings.Split(strings.TrimSuffix(x.out.String(), "\n.\n"), "\n") {
		name, value, _ := strings.Cut(line, "=")
		env[name] = value
	}
	resp, err := http.Get("http://" + env["BMQ_ADMIN_ADDR"] + "/v1/status")
	require.NoError(t, err, "a command can ask its node")
	defer resp.Body.Close()
	defer http.DefaultClient.CloseIdleConnections()
	delete(env, "BMQ_ADMIN_ADDR")
	require.Equal(t, env["BMQ_TERM"]+".1", env["BMQ_LSN"])
	delete(env, "BMQ_LSN")
	require.Contains(t, []string{"1", "2"}, env["BMQ_TERM"],
		"it may have stood once before its campaign began")
	delete(env, "BMQ_TERM")
	require.Equal(t, map[string]string{
		"BMQ_NODE": "a", "BMQ_CLUSTER": "c1", "BMQ_GROUP": "jobs", "BMQ_ADMIN_SOCKET": socket,
		"BMQ_MINE": "kept", "BMQ_LEADER_META": "http://a.example", "BMQ_PREPARED": "false",
	}, env, "a single voter has no lease")
}

func TestExecEndsTheCommandInOrderAndForwardsSignals(t *testing.T) {
	t.Parallel()
	x := startExec(t, nodes.SoleFlags(t), sh(`for s in HUP USR1 USR2; do trap "echo got $s" $s; done
		trap 'sleep 0.1; echo ended in order; exit 5' TERM
		echo ready; while :; do sleep 0.01; done`))
	x.prints("ready")
	for s, name := range map[syscall.Signal]string{syscall.SIGHUP: "HUP", syscall.SIGUSR1: "USR1",
		syscall.SIGUSR2: "USR2"} {
		x.signal(s)
		x.prints("got " + name)
	}
	x.signal(syscall.SIGTERM)
	require.Zero(t, x.code(), "that the command was told to end is no failure, whatever it says")
	x.prints("ended in order")
	require.Contains(t, x.said(), "code=5 stopped=true")
}
