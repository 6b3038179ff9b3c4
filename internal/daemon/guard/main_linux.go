package guard

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bmqelect/bmqelect/internal/base/clock"
)

const (
	controlFile = 3 // the socket to the owner; held files follow
	// retryKill is the pause after which what is still there is killed again.
	retryKill = 20 * time.Millisecond
)

// guard is the process between an owner and a command. One goroutine runs it.
type guard struct {
	settings
	control *os.File
	owner   int // the descriptor of control
	alarm   *clock.BootAlarm
	command int    // process ID, and that of its group; 0 once it has ended
	limit   moment // when everything is killed although the deadline may be later
	killing bool
	heard   []byte // the begin of a line that is not whole yet
	kept    []int  // files that stay open
}

// Main is the guard. It returns its exit code when nothing of the command is left. The
// arguments are those that Start appended.
func Main(args []string) int {
	// The kernel kills the command when the thread that started it ends.
	runtime.LockOSThread()
	g := &guard{control: os.NewFile(controlFile, "owner"), owner: controlFile, limit: never}
	err := g.prepare(args)
	if err == nil {
		err = g.run()
	}
	if err != nil {
		g.say(sayFailed, int64(CodeOf(err)), err.Error())
		return 1
	}
	g.say(sayGone, 0, "")
	return 0
}

// prepare makes this process one that outlives its owner and nothing escapes.
func (g *guard) prepare(args []string) (err error) {
	if g.settings, err = parseSettings(args); err != nil {
		return err
	}
	for fd := controlFile; fd <= controlFile+g.held; fd++ {
		syscall.CloseOnExec(fd) // the command must not hold them too
		if fd != controlFile {
			g.kept = append(g.kept, fd)
		}
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("adopt what daemonizes: %w", err)
	}
	g.alarm, err = clock.NewBootAlarm()
	return err
}

// start starts the command in a process group of its own.
func (g *guard) start() error {
	path, err := exec.LookPath(g.args[0])
	if err != nil {
		return err
	}
	g.command, err = syscall.ForkExec(path, g.args, &syscall.ProcAttr{
		Env: os.Environ(), Files: []uintptr{0, 1, 2},
		Sys: &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL},
	})
	if err != nil {
		return fmt.Errorf("start %s: %w", path, err)
	}
	return nil
}

// run starts the command and returns when nothing of it is left.
func (g *guard) run() error {
	defer g.alarm.Close()
	// Those who end every process of a service mean the owner: it has the guard end
	// the command. Ignoring them instead would be inherited by the command.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGPIPE)
	died := make(chan os.Signal, 1)
	signal.Notify(died, syscall.SIGCHLD)
	if err := g.start(); err != nil {
		return err
	}
	news := make(chan struct{})
	go func() {
		for g.awaitNews() {
			news <- struct{}{}
		}
	}()
	told := news // nil once the owner has gone
	for gone := false; !gone; {
		if err := g.alarm.Set(time.Duration(min(g.deadline.after(-g.margin), g.limit))); err != nil {
			g.kill() // without a timer nothing can be promised
		}
		select {
		case <-told:
			if !g.hear() {
				told = nil
				g.terminate()
				g.hurry()
			}
		case <-died:
			gone = g.reap()
		case <-g.alarm.Rings():
			g.ring()
		}
	}
	return nil
}

// awaitNews waits until the owner has said something, or has gone.
func (g *guard) awaitNews() bool {
	for {
		fds := []unix.PollFd{{Fd: int32(g.owner), Events: unix.POLLIN}}
		if _, err := unix.Poll(fds, -1); !errors.Is(err, unix.EINTR) {
			return err == nil
		}
	}
}

// hear obeys all that the owner has said so far, and reports whether it is there. It
// does not wait. It believes nothing after a line that is none.
func (g *guard) hear() (there bool) {
	buffer, control := make([]byte, 4<<10), make([]byte, unix.CmsgSpace(4))
	for {
		n, more, _, _, err := unix.Recvmsg(g.owner, buffer, control, unix.MSG_DONTWAIT|unix.MSG_CMSG_CLOEXEC)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EAGAIN):
			return true
		case err != nil || n == 0:
			return false
		}
		g.keep(control[:more])
		g.heard = append(g.heard, buffer[:n]...)
		for {
			text, rest, whole := bytes.Cut(g.heard, []byte("\n"))
			if !whole {
				break
			}
			l, err := parseLine(string(text))
			if err != nil {
				return false
			}
			g.heard = rest
			g.obey(l)
		}
	}
}

// obey does what the owner says.
func (g *guard) obey(l line) {
	switch l.word {
	case tellDeadline:
		g.deadline = moment(l.number)
	case tellSignal:
		if g.command != 0 {
			_ = unix.Kill(g.command, unix.Signal(l.number))
		}
	case tellStop:
		g.terminate()
	case tellKill:
		g.kill()
	}
}

// terminate lets the command's group end in good order, or what the command left
// behind. A process that was stopped has to go on for that.
func (g *guard) terminate() {
	for _, sig := range []unix.Signal{unix.SIGTERM, unix.SIGCONT} {
		if g.command != 0 {
			_ = unix.Kill(-g.command, sig)
			continue
		}
		signalChildren(sig)
	}
}

// signalChildren signals every child of this process, those adopted included. They are
// its own to reap, so none of the numbers can mean another process by now.
func signalChildren(sig unix.Signal) {
	self := os.Getpid()
	signalWhere(func(p process) bool { return p.parent == self }, sig)
}

// hurry leaves what goes on no more than the grace.
func (g *guard) hurry() {
	now, err := clockNow()
	if err != nil {
		g.kill()
		return
	}
	g.limit = min(g.limit, now.after(g.grace))
}

// ring follows the alarm. A guard that got no processor for a while finds the alarm and
// what it was told meanwhile at the same time: the newer word counts.
func (g *guard) ring() {
	g.hear()
	g.expire()
}

// expire follows the alarm, if what it was set for has come.
func (g *guard) expire() {
	now, err := clockNow()
	if err == nil && now < min(g.deadline.after(-g.margin), g.limit) {
		return // the deadline has moved on
	}
	if !g.killing && (err != nil || now >= g.deadline.after(-g.margin)) {
		g.say(sayExpired, 0, "")
	}
	g.kill()
}

// kill kills everything there is, and goes on with it until nothing is left: a process
// that dies leaves its children to the guard.
func (g *guard) kill() {
	if !g.killing {
		g.killing = true
		g.say(sayKilling, 0, "")
	}
	if g.command != 0 {
		_ = unix.Kill(-g.command, unix.SIGKILL)
	}
	signalChildren(unix.SIGKILL)
	if now, err := clockNow(); err == nil {
		g.deadline, g.limit = never, now.after(retryKill)
	}
}

// reap takes note of who has died, and reports whether nothing is left.
func (g *guard) reap() (gone bool) {
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, unix.WNOHANG, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return true // there are no children, and so nothing below them
		case pid == 0:
			if g.killing {
				g.kill()
			}
			return false
		case pid == g.command:
			g.exited(status)
		}
	}
}

// exited follows the end of the command itself. What it leaves behind is to end too.
func (g *guard) exited(status unix.WaitStatus) {
	code := status.ExitStatus()
	if status.Signaled() {
		code = codeSignaled + int(status.Signal())
	}
	g.say(sayExited, int64(code), "")
	g.command = 0
	g.terminate()
	g.hurry()
}

// say tells the owner; one that is gone does not hear it.
func (g *guard) say(w word, number int64, text string) {
	_, _ = g.control.WriteString(line{w, number, text}.String())
}
