package supervisor

import (
	"bytes"
	"flag"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/bmqelect/bmqelect/internal/testkit"
)

var patience = testkit.Limit(30 * time.Second)

// soon is time enough for a shell to get going, and short enough to wait for.
const soon = 700 * time.Millisecond

// TestMain lets this binary be the supervisor, and a process that has one.
func TestMain(m *testing.M) {
	os.Setenv("GORACE", "atexit_sleep_ms=0") // supervisors would sleep for a second at their end
	if len(os.Args) > 1 && os.Args[1] == "supervisor" {
		os.Exit(Main(os.Args[2:]))
	}
	if len(os.Args) > 1 && os.Args[1] == "owner" {
		own(os.Args[2:])
	}
	flag.Parse()
	_ = flag.Set("test.parallel", "8") // they mostly wait
	goleak.VerifyTestMain(m)
}

// own runs a command whose deadline keeps moving for as long as this process does. Like a
// lease, it moves no more once it has passed.
func own(args []string) {
	at := time.Now().Add(2 * soon)
	cfg := config(func() time.Time {
		if now := time.Now(); now.Before(at) {
			at = now.Add(2 * soon)
		}
		return at
	}, args...)
	cfg.Grace = 2 * soon // the deadline bounds it
	c, err := new(Evidence).Start(cfg)
	if err != nil {
		panic(err)
	}
	for {
		c.Renew()
		time.Sleep(10 * time.Millisecond) // the work of this process is to pass time
	}
}

func config(deadline func() time.Time, args ...string) Config {
	return Config{
		Self: []string{"/proc/self/exe", "supervisor"}, Args: args, Env: os.Environ(),
		Deadline: deadline, Margin: 100 * time.Millisecond, Grace: 200 * time.Millisecond,
		Started: func() {},
	}
}

func endless() time.Time { return time.Time{} }

// run runs a shell script under a supervisor.
func run(t *testing.T, deadline func() time.Time, script string) *Command {
	t.Helper()
	return begin(t, config(deadline, "sh", "-c", script))
}

// running runs a shell script in a directory of its own, in which it leaves its process ID.
func running(t *testing.T, deadline func() time.Time, script string) (
	c *Command, dir string, pid int,
) {
	t.Helper()
	dir = t.TempDir()
	c = run(t, deadline, "cd "+dir+"; "+script)
	return c, dir, pidIn(t, filepath.Join(dir, "pid"))
}

// stubborn is a script that leaves its process ID, ignores SIGTERM and has no end.
const stubborn = "trap '' TERM; echo $$ >pid; while :; do sleep 0.2; done"

// pair are the two ends of a socket between an owner and its supervisor.
func pair(t *testing.T) (owner, supervisor *os.File) {
	t.Helper()
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	owner, supervisor = os.NewFile(uintptr(ends[0]), ""), os.NewFile(uintptr(ends[1]), "")
	t.Cleanup(func() { owner.Close(); supervisor.Close() })
	return owner, supervisor
}

func tells(t *testing.T, end *os.File, messages ...message) {
	t.Helper()
	for _, m := range messages {
		_, err := end.Write(m.encode())
		require.NoError(t, err)
	}
}

func begin(t *testing.T, cfg Config) *Command {
	t.Helper()
	c, err := new(Evidence).Start(cfg)
	require.NoError(t, err)
	bound := time.AfterFunc(2*patience, c.end) // Result waits for a supervisor that never kills
	t.Cleanup(func() {
		bound.Stop()
		c.Kill()
		end := time.AfterFunc(patience, c.end) // a supervisor that hangs hears nothing
		defer end.Stop()
		c.Result()
	})
	return c
}

// pidIn waits for the process ID that a script writes to a file.
func pidIn(t *testing.T, file string) (pid int) {
	t.Helper()
	require.Eventually(t, func() bool {
		text, err := os.ReadFile(file)
		if err == nil && bytes.HasSuffix(text, []byte("\n")) {
			pid, err = strconv.Atoi(strings.TrimSpace(string(text)))
			return err == nil
		}
		return false
	}, patience, time.Millisecond, file)
	return pid
}

// runs reports whether a process is there and not dead already.
func runs(pid int) bool {
	p, err := look(pid)
	return err == nil && !p.dead()
}

func ends(t *testing.T, pid int) {
	t.Helper()
	require.Eventually(t, func() bool { return !runs(pid) }, patience, time.Millisecond,
		"process %d ends", pid)
}

func TestExitCodesAreThoseOfAShell(t *testing.T) {
	t.Parallel()
	plain := filepath.Join(t.TempDir(), "plain")
	require.NoError(t, os.WriteFile(plain, nil, 0o600))
	for name, c := range map[string]struct {
		args  []string
		code  int
		fault string
	}{
		"success":        {[]string{"true"}, 0, ""},
		"failure":        {[]string{"sh", "-c", "exit 7"}, 7, ""},
		"signal":         {[]string{"sh", "-c", "kill -USR1 $$"}, 138, ""},
		"not found":      {[]string{"no-such-command"}, CodeNotFound, "executable file not found"},
		"no such file":   {[]string{"/nowhere/command"}, CodeNotFound, "no such file"},
		"not executable": {[]string{plain}, CodeNotExecutable, "permission denied"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			result := begin(t, config(endless, c.args...)).Result()
			require.Equal(t, c.code, result.Code)
			require.False(t, result.Expired)
			if c.fault == "" {
				require.NoError(t, result.Err)
			} else {
				require.ErrorContains(t, result.Err, c.fault)
			}
		})
	}
}

func TestStopLetsTheWholeGroupEndInOrder(t *testing.T) {
	t.Parallel()
	c, dir, _ := running(t, endless, `trap 'wait; echo >outer; exit 5' TERM
		(trap 'echo >inner; exit' TERM; echo 1 >pid; while :; do sleep 0.2; done) & wait`)
	c.Stop()
	require.Equal(t, Result{Code: 5}, c.Result())
	require.FileExists(t, dir+"/inner")
	require.FileExists(t, dir+"/outer")
}

func exists(file string) bool { _, err := os.Stat(file); return err == nil }

func TestStopWakesACommandThatIsStopped(t *testing.T) {
	t.Parallel()
	c, _, pid := running(t, endless, "echo $$ >pid; kill -STOP $$; sleep 60")
	require.Eventually(t, func() bool { p, _ := look(pid); return p.state == 'T' }, patience,
		time.Millisecond)
	c.Stop()
	require.Equal(t, 143, c.Result().Code)
}

func TestASignalIsForTheCommandAlone(t *testing.T) {
	t.Parallel()
	c, dir, _ := running(t, endless, `(trap 'echo >inner' USR1; while :; do sleep 0.2; done) &
		trap 'kill -KILL $!; exit 9' USR1; echo 1 >pid; wait`)
	c.Signal(syscall.SIGUSR1)
	require.Equal(t, 9, c.Result().Code)
	require.NoFileExists(t, dir+"/inner")
}

func TestADeadlineThatMovesOnIsFollowed(t *testing.T) {
	t.Parallel()
	first := time.Now().Add(3 * soon)
	at := first
	c := run(t, func() time.Time { return at }, "sleep 60")
	at = time.Now().Add(patience)
	c.Renew()
	time.Sleep(time.Until(first) + soon/7)
	select {
	case <-c.Done():
		require.Fail(t, "killed although the deadline had moved on", "%+v", c.Result())
	default:
	}
	at = time.Now().Add(soon)
	c.Renew()
	require.True(t, c.Result().Expired, "nobody moves it on any more")
}

// A supervisor that gets no processor while its alarm comes, and is told meanwhile that
// the deadline has moved, hears that before it kills.
func TestASupervisorThatWasDelayedKnowsTheNewestDeadline(t *testing.T) {
	t.Parallel()
	at := time.Now().Add(patience)
	c, dir, _ := running(t, func() time.Time { return at },
		"trap 'echo >alive' USR1; echo $$ >pid; while :; do sleep 0.2; done")
	first := time.Now().Add(3 * soon)
	at = first
	c.Renew()
	require.NoError(t, c.cmd.Process.Signal(syscall.SIGSTOP))
	at = time.Now().Add(patience)
	c.Renew()
	time.Sleep(time.Until(first))
	require.NoError(t, c.cmd.Process.Signal(syscall.SIGCONT))
	c.Signal(syscall.SIGUSR1)
	require.Eventually(t, func() bool { return exists(dir + "/alive") }, patience, time.Millisecond,
		"%+v", c)
}

// It does so whichever of the two it finds first.
func TestTheAlarmOfASupervisorReadsWhatItWasToldFirst(t *testing.T) {
	owner, end := pair(t)
	now := clockNow()
	s := &supervisor{owner: int(end.Fd()), limit: never, settings: settings{Deadline: now}}
	later := now.after(time.Hour)
	tells(t, owner, message{Word: tellDeadline, Number: int64(later)})
	s.ring()
	require.False(t, s.killing)
	require.Equal(t, later, s.Deadline)
}

// A renewal that comes as the supervisor ends stays unread. Its last words count still.
func TestTheLastWordsOfASupervisorThatLeftSomethingUnreadAreHeard(t *testing.T) {
	ours, theirs := pair(t)
	conn, err := net.FileConn(ours)
	require.NoError(t, err)
	defer conn.Close()
	c := &Command{conn: conn.(*net.UnixConn)}
	require.NoError(t, c.write(message{Word: tellDeadline}))
	tells(t, theirs, message{Word: sayExpired}, message{Word: sayExited, Number: 137},
		message{Word: sayGone})
	require.NoError(t, theirs.Close())
	c.listen()
	require.True(t, c.gone)
	require.Equal(t, Result{Code: 137, Expired: true}, c.result)
}

func TestACommandThatCouldOnlyStartAfterItsDeadlineNeverRuns(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "ran")
	cfg := config(time.Now, "sh", "-c", "echo >"+file)
	cfg.Started = func() { t.Error("it has started") }
	c := begin(t, cfg)
	require.Equal(t, Result{Code: CodeNotExecutable, Expired: true, Err: ErrLate}, c.Result())
	require.NoFileExists(t, file)
}

func TestASupervisorThatStartsLateGoesByTheNewestDeadline(t *testing.T) {
	now := clockNow()
	later := message{Word: tellDeadline, Number: int64(now.after(time.Hour))}
	for name, c := range map[string]struct {
		told []message
		gone bool
		late bool
	}{
		"told nothing":      {nil, false, true},
		"renewed":           {[]message{later}, false, false},
		"renewed, and over": {[]message{later, {Word: tellStop}}, false, true},
		"renewed, and kill": {[]message{later, {Word: tellKill}}, false, true},
		"the owner is gone": {[]message{later}, true, true},
	} {
		owner, end := pair(t)
		tells(t, owner, c.told...)
		if c.gone {
			owner.Close()
		}
		s := &supervisor{owner: int(end.Fd()), limit: never, settings: settings{Deadline: now}}
		require.Equal(t, c.late, s.late(), name)
	}
}

// A supervisor that does not read for a while is ended near its deadline, not before.
func TestRenewalsDoNotEndASupervisorThatIsDelayed(t *testing.T) {
	t.Parallel()
	at := time.Now().Add(patience)
	c, _, pid := running(t, func() time.Time { return at }, "echo $$ >pid; sleep 60")
	require.NoError(t, c.cmd.Process.Signal(syscall.SIGSTOP))
	for full := false; !full; {
		at = at.Add(2 * worthSending)
		began := time.Now()
		c.Renew()
		full = time.Since(began) >= sendTimeout
	}
	time.Sleep(soon / 7)
	require.True(t, runs(pid), "there is time")
	require.NoError(t, c.cmd.Process.Signal(syscall.SIGCONT))
	at = time.Now()
	c.Renew() // an earlier deadline is not left out
	ends(t, pid)
}

func TestWhatIgnoresSigtermIsKilledBeforeTheDeadline(t *testing.T) {
	t.Parallel()
	at, file := time.Now().Add(patience), filepath.Join(t.TempDir(), "pid")
	cfg := config(func() time.Time { return at }, "sh", "-c",
		"trap '' TERM; echo $$ >"+file+"; while :; do sleep 0.2; done")
	cfg.Margin = 2 * soon // also the time in which a busy machine gets it done
	c := begin(t, cfg)
	pidIn(t, file)
	at = time.Now().Add(3 * soon)
	c.Renew()
	c.Stop()
	require.Equal(t, Result{Code: 137, Expired: true}, c.Result())
	require.True(t, time.Now().Before(at), "nothing is left when the deadline comes")
}

func TestKillDoesNotWait(t *testing.T) {
	t.Parallel()
	c, _, _ := running(t, endless, stubborn)
	c.Kill()
	require.Equal(t, Result{Code: 137}, c.Result())
}

// A daemon leaves the group, the session and its parent, and ignores SIGTERM.
const daemon = `setsid sh -c 'trap "" TERM; echo $$ >"$0"; while :; do sleep 0.2; done' `

func TestDaemonsAreFoundAndKilled(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]string{"when the command ends": "exit 3",
		"when the deadline comes": "sleep 60"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := time.Now().Add(patience)
			c, _, pid := running(t, func() time.Time { return at },
				"("+daemon+"pid &); while ! [ -s pid ]; do sleep 0.01; done; "+after)
			if strings.HasPrefix(after, "sleep") {
				at = time.Now()
				c.Renew()
			}
			result := c.Result()
			require.False(t, runs(pid))
			require.NoError(t, result.Err)
		})
	}
}

func TestTheCommandEndsWithItsOwner(t *testing.T) {
	t.Parallel()
	for name, sig := range map[string]syscall.Signal{"killed": syscall.SIGKILL,
		"stopped": syscall.SIGSTOP} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			owner := owned(t, "("+daemon+dir+"/daemon &); trap 'echo >"+dir+"/told' TERM; "+
				"echo $$ >"+dir+"/pid; while :; do sleep 0.2; done")
			pids := []int{pidIn(t, dir+"/pid"), pidIn(t, dir+"/daemon")}
			for _, pid := range pids {
				require.True(t, runs(pid))
			}
			require.NoError(t, owner.Signal(sig))
			for _, pid := range pids {
				ends(t, pid)
			}
			require.Equal(t, sig == syscall.SIGKILL, exists(dir+"/told"),
				"there is time to end in order when the owner is gone")
		})
	}
}

// owned starts a script whose owner is a process of its own.
func owned(t *testing.T, script string) *os.Process {
	owner := exec.Command("/proc/self/exe", "owner", "sh", "-c", script)
	require.NoError(t, owner.Start())
	t.Cleanup(func() { _ = owner.Process.Kill(); _ = owner.Wait() })
	return owner.Process
}

func TestTheCommandEndsIfOwnerAndSupervisorAreLost(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "pid")
	owner := owned(t, "echo $$ >"+file+"; exec sleep 60")
	pid := pidIn(t, file)
	command, err := look(pid)
	require.NoError(t, err)
	require.NoError(t, owner.Signal(syscall.SIGSTOP))
	require.NoError(t, syscall.Kill(command.parent, syscall.SIGKILL))
	ends(t, pid)
}

func TestTheCommandEndsWithItsSupervisor(t *testing.T) {
	t.Parallel()
	c, dir, pid := running(t, endless,
		"(trap '' TERM; while :; do sleep 0.2; done) & echo $! >inner; echo $$ >pid; wait")
	inner := pidIn(t, dir+"/inner")
	require.NoError(t, c.cmd.Process.Kill())
	result := c.Result()
	require.ErrorContains(t, result.Err,
		"the supervisor of sh ended before the command: signal: killed")
	require.Equal(t, 137, result.Code)
	require.False(t, runs(pid))
	require.False(t, runs(inner))
}

func TestASupervisorThatHangsIsEndedWithTheCommand(t *testing.T) {
	t.Parallel()
	at := time.Now().Add(patience)
	c, _, pid := running(t, func() time.Time { return at }, "echo $$ >pid; sleep 60")
	require.NoError(t, c.cmd.Process.Signal(syscall.SIGSTOP))
	c.Renew()
	require.True(t, runs(pid), "there is time")
	at = time.Now()
	require.Eventually(t, func() bool { c.Renew(); return !runs(pid) }, patience, time.Millisecond)
	require.Error(t, c.Result().Err)
	require.True(t, c.Result().Expired)
}

func TestWhatIsHeldStaysOpenAsLongAsTheCommandRuns(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	dir := t.TempDir()
	lock := lockIn(t, dir)
	file := filepath.Join(t.TempDir(), "pid")
	cfg := config(endless, "sh", "-c", "echo $$ >"+file+"; ls -l /proc/$$/fd >"+file+".open; sleep 60")
	cfg.Held = []syscall.Conn{ln.(*net.TCPListener), lock}
	c := begin(t, cfg)
	pidIn(t, file)
	nonblocking(t, ln)
	ln.Close()
	lock.Close()

	conn, err := net.Dial("tcp", ln.Addr().String())
	require.NoError(t, err, "the port is held")
	conn.Close()
	require.Error(t, tryLock(t, dir), "the lock is held")
	require.Eventually(t, func() bool { return exists(file + ".open") }, patience, time.Millisecond)
	open, err := os.ReadFile(file + ".open")
	require.NoError(t, err)
	require.NotContains(t, string(open), dir, "the command has nothing of it")

	c.Kill()
	c.Result()
	_, err = net.Dial("tcp", ln.Addr().String())
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	require.NoError(t, tryLock(t, dir))
}

// Whenever a connection is made, how it ends shows no death before the command has ended.
func TestEvidenceIsHeldAsLongAsTheCommandRuns(t *testing.T) {
	t.Parallel()
	var e Evidence
	connect := func() (near *net.TCPConn, ended <-chan error) {
		near, far := connected(t)
		require.NoError(t, e.Hold(near))
		end := make(chan error, 1)
		go func() {
			_, err := far.Read(make([]byte, 1))
			end <- err
		}()
		return near, end
	}
	before, endBefore := connect()
	file := filepath.Join(t.TempDir(), "pid")
	c, err := e.Start(config(endless, "sh", "-c", "echo $$ >"+file+"; sleep 60"))
	require.NoError(t, err)
	pidIn(t, file)
	during, endDuring := connect()
	dropped, endDropped := connect()
	for _, near := range []*net.TCPConn{before, during} {
		require.NoError(t, near.Close()) // as the kernel does when the process dies
	}
	require.NoError(t, dropped.SetLinger(0))
	require.NoError(t, dropped.Close())
	_, endLast := connect()
	require.ErrorIs(t, <-endDropped, syscall.ECONNRESET,
		"what is reset here is held no longer than to the next one")
	for _, end := range []<-chan error{endBefore, endDuring, endLast} {
		require.Empty(t, end)
	}
	c.Kill()
	c.Result()
	require.Equal(t, io.EOF, <-endBefore, "as a dead process ends it")
	require.Equal(t, io.EOF, <-endDuring)
	after, endAfter := connect()
	require.NoError(t, after.Close())
	require.Equal(t, io.EOF, <-endAfter, "there is no command that holds it")
}

// connected returns the two ends of a connection. Its far end is closed with the test.
func connected(t *testing.T) (near *net.TCPConn, far net.Conn) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	conn, err := net.Dial("tcp", ln.Addr().String())
	require.NoError(t, err)
	far, err = ln.Accept()
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close(); far.Close() })
	return conn.(*net.TCPConn), far
}

// nonblocking is how package net wants its sockets: files that are shared share it.
func nonblocking(t *testing.T, ln net.Listener) {
	raw, err := ln.(*net.TCPListener).SyscallConn()
	require.NoError(t, err)
	require.NoError(t, raw.Control(func(fd uintptr) {
		flags, err := unix.FcntlInt(fd, unix.F_GETFL, 0)
		require.NoError(t, err)
		require.NotZero(t, flags&unix.O_NONBLOCK)
	}))
}

func lockIn(t *testing.T, dir string) *os.File {
	f, err := os.Create(filepath.Join(dir, "lock"))
	require.NoError(t, err)
	t.Cleanup(func() { f.Close() })
	require.NoError(t, unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB))
	return f
}

func tryLock(t *testing.T, dir string) error {
	f, err := os.Open(filepath.Join(dir, "lock"))
	require.NoError(t, err)
	defer f.Close()
	return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
}

// What others would take for the death of the work must not happen while it runs.
func TestNoCommandStartsIfAFileToHoldIsClosed(t *testing.T) {
	t.Parallel()
	lock := lockIn(t, t.TempDir())
	require.NoError(t, lock.Close())
	cfg := config(endless, "true")
	cfg.Held = []syscall.Conn{lock}
	_, err := new(Evidence).Start(cfg)
	require.ErrorIs(t, err, net.ErrClosed)

	near, _ := net.Pipe()
	require.ErrorContains(t, new(Evidence).Hold(near), "a *net.pipe cannot be held: it has no file")
}

func TestASupervisorIsNotStartedByHand(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{nil, {"{}"}, {"1 2 3", "true"}} {
		_, _, err := parseArguments(args)
		require.Error(t, err, args)
	}
}

// The owner's end of a socket that says something else is taken for closed.
func TestASupervisorBelievesNothingAfterNonsense(t *testing.T) {
	owner, end := pair(t)
	s := &supervisor{owner: int(end.Fd()), limit: never}
	for _, packet := range []string{`{"Word":"deadline","Number":7}`, "nonsense",
		`{"Word":"deadline","Number":8}`} {
		_, err := owner.WriteString(packet)
		require.NoError(t, err)
	}
	require.False(t, s.receive())
	require.EqualValues(t, 7, s.Deadline)
}
