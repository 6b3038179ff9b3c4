package supervisor

import (
	"encoding/json"
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
	controlFile = 3 // the socket to the owner; the held files follow
	// retryKill is the pause before what is left is killed again.
	retryKill = 20 * time.Millisecond
)

// supervisor is the process between an owner and a command. One goroutine runs it.
type supervisor struct {
	settings
	owner   int // the socket
	alarm   *clock.BootAlarm
	command int    // process ID, and that of its group; 0 once it has ended
	limit   moment // when everything is killed, even if the deadline is later
	killing bool
	told    bool  // the owner has said that the command is to end
	kept    []int // files that stay open
}

// Main is the supervisor. It returns its exit code when nothing of the command is left.
// The arguments are those that Start appended.
func Main(args []string) int {
	// The kernel kills the command when the thread that started it ends (Pdeathsig).
	runtime.LockOSThread()
	s := &supervisor{owner: controlFile, limit: never}
	err := s.start(args)
	if errors.Is(err, ErrLate) {
		s.say(message{Word: sayLate})
		return 0
	}
	if err != nil {
		s.say(message{Word: sayFailed, Number: int64(CodeOf(err)), Text: err.Error()})
		return 1
	}
	s.say(message{Word: sayStarted})
	s.run()
	s.say(message{Word: sayGone})
	return 0
}

// start makes this process survive its owner and adopt all descendants, and starts the command in a
// process group of its own.
func (s *supervisor) start(args []string) (err error) {
	var command []string
	if s.settings, command, err = parseArguments(args); err != nil {
		return err
	}
	syscall.CloseOnExec(controlFile) // the command must have neither the socket nor what is held
	for fd := controlFile + 1; fd <= controlFile+s.Held; fd++ {
		syscall.CloseOnExec(fd)
		s.kept = append(s.kept, fd)
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("adopt processes that daemonize: %w", err)
	}
	if s.alarm, err = clock.NewBootAlarm(); err == nil {
		err = probeClock()
	}
	if err != nil {
		return err
	}
	path, err := exec.LookPath(command[0])
	if err != nil {
		return err
	}
	// A signal to all processes of a service is meant for the owner, which then tells the supervisor
	// to end the command. Ignoring these signals instead would make the command inherit that.
	signal.Notify(make(chan os.Signal, 1),
		syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGPIPE)
	if s.late() {
		return ErrLate
	}
	resetOnFork()
	s.command, err = syscall.ForkExec(path, command, &syscall.ProcAttr{
		Env: os.Environ(), Files: []uintptr{0, 1, 2},
		Sys: &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL},
	})
	if err != nil {
		return fmt.Errorf("start %s: %w", path, err)
	}
	return nil
}

// resetOnFork lets the children of this thread be ordinary processes: with real-time priority, a
// command that computes for long would keep the node from the processor. If a sandbox forbids it,
// the command has the priority of this process.
func resetOnFork() {
	attr, err := unix.SchedGetAttr(0, 0)
	if err == nil && (attr.Policy == unix.SCHED_RR || attr.Policy == unix.SCHED_FIFO) {
		attr.Flags |= unix.SCHED_FLAG_RESET_ON_FORK
		_ = unix.SchedSetAttr(0, attr, 0)
	}
}

// late reports whether there is no time left to start the command.
func (s *supervisor) late() bool {
	return s.near() && (!s.receive() || s.told || s.killing || s.near())
}

// near reports whether it is time to kill everything, by the newest deadline.
func (s *supervisor) near() bool { return clockNow() >= s.Deadline.after(-s.Margin) }

// run returns when nothing of the command is left.
func (s *supervisor) run() {
	defer s.alarm.Close()
	died := make(chan os.Signal, 1)
	signal.Notify(died, syscall.SIGCHLD)
	news := make(chan struct{})
	go func() {
		for s.awaitNews() {
			news <- struct{}{}
		}
	}()
	inbox := news // nil after the owner's end
	for gone := s.reap(); !gone; {
		if err := s.alarm.Set(time.Duration(min(s.Deadline.after(-s.Margin), s.limit))); err != nil {
			s.kill() // without a timer nothing can be promised
		}
		select {
		case <-inbox:
			if !s.receive() {
				inbox = nil
				s.terminate()
			}
		case <-died:
			gone = s.reap()
		case <-s.alarm.Rings():
			s.ring()
		}
	}
}

// awaitNews waits until the owner has said something or has ended.
func (s *supervisor) awaitNews() bool {
	for {
		fds := []unix.PollFd{{Fd: int32(s.owner), Events: unix.POLLIN}}
		if _, err := unix.Poll(fds, -1); !errors.Is(err, unix.EINTR) {
			return err == nil
		}
	}
}

// receive carries out what the owner has said so far, without waiting, and reports whether the
// owner is there. It takes a malformed packet for the end of the owner.
func (s *supervisor) receive() (there bool) {
	packet, control := make([]byte, maxMessage), make([]byte, unix.CmsgSpace(4))
	for {
		n, more, _, _, err := unix.Recvmsg(s.owner, packet, control,
			unix.MSG_DONTWAIT|unix.MSG_CMSG_CLOEXEC)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EAGAIN):
			return true
		case err != nil || n == 0:
			return false
		}
		s.keep(control[:more])
		var m message
		if err := json.Unmarshal(packet[:n], &m); err != nil {
			return false
		}
		switch m.Word {
		case tellDeadline:
			s.Deadline = moment(m.Number)
		case tellSignal:
			if s.command != 0 {
				_ = unix.Kill(s.command, unix.Signal(m.Number))
			}
		case tellStop:
			s.told = true
			s.signalGroup(unix.SIGTERM)
			s.signalGroup(unix.SIGCONT) // a stopped process must continue, to end
		case tellKill:
			s.kill()
		}
	}
}

// signalGroup signals the command's group or, after the end of the command, what it left behind.
func (s *supervisor) signalGroup(sig unix.Signal) {
	if s.command != 0 {
		_ = unix.Kill(-s.command, sig)
		return
	}
	signalChildren(sig)
}

// signalChildren signals every child of this process, adopted ones included. Only this process
// reaps them, so none of their numbers can mean another process by now.
func signalChildren(sig unix.Signal) {
	self := os.Getpid()
	signalWhere(func(p process) bool { return p.parent == self }, sig)
}

// terminate lets everything end in good order, within Grace.
func (s *supervisor) terminate() {
	s.signalGroup(unix.SIGTERM)
	s.signalGroup(unix.SIGCONT)
	s.limit = min(s.limit, clockNow().after(s.Grace))
}

// ring handles the alarm. If this process did not run for a while, the alarm and newer messages
// come at the same time: the newest deadline counts.
func (s *supervisor) ring() {
	s.receive()
	near := s.near()
	if !near && clockNow() < s.limit {
		return // the deadline has moved
	}
	if near && !s.killing {
		s.say(message{Word: sayExpired})
	}
	s.kill()
}

// kill kills everything. It is called again until nothing is left: when a process dies, its
// children become children of the supervisor.
func (s *supervisor) kill() {
	if !s.killing {
		s.killing = true
		s.say(message{Word: sayKilling})
	}
	if s.command != 0 {
		_ = unix.Kill(-s.command, unix.SIGKILL)
	}
	signalChildren(unix.SIGKILL)
	s.Deadline, s.limit = never, clockNow().after(retryKill)
}

// reap collects the processes that have died, and reports whether none is left.
func (s *supervisor) reap() (gone bool) {
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, unix.WNOHANG, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return true // no children, and so no descendants
		case pid == 0:
			if s.killing {
				s.kill()
			}
			return false
		case pid == s.command:
			code := status.ExitStatus()
			if status.Signaled() {
				code = codeSignaled + int(status.Signal())
			}
			s.say(message{Word: sayExited, Number: int64(code)})
			s.command = 0
			s.terminate() // what it leaves behind must end, too
		}
	}
}

func (s *supervisor) say(m message) {
	for {
		if _, err := unix.Write(s.owner, m.encode()); !errors.Is(err, unix.EINTR) {
			return
		}
	}
}
