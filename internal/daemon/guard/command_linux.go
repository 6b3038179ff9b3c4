package guard

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// tellWithin bounds how long a guard may take to read what it is told.
	tellWithin = 100 * time.Millisecond
	// worthTelling is by how much a deadline has to move.
	worthTelling = time.Millisecond
	// lookAgain is the pause between two looks at what was killed.
	lookAgain = 5 * time.Millisecond
)

// Command is a command that runs, or has run, under a guard.
type Command struct {
	cfg  Config
	cmd  *exec.Cmd // the guard
	conn *net.UnixConn
	done chan struct{}

	renewing sync.Mutex // is taken before mu

	mu      sync.Mutex
	told    moment // the deadline that the guard knows
	toldAt  moment // since when
	killing bool   // the guard said that it does
	gone    bool   // the guard said that nothing is left
	result  Result
}

// Start starts a command. The error is why there is no guard; that the command could
// not be started is in its Result. A guard that starts is either told by Renew how the
// deadline moves, or kills the command.
func Start(cfg Config) (*Command, error) {
	c := &Command{cfg: cfg, done: make(chan struct{})}
	err := c.start()
	if err != nil {
		return nil, fmt.Errorf("start the guard of %s: %w", cfg.Args[0], err)
	}
	go c.run()
	return c, nil
}

func (c *Command) start() (err error) {
	if c.told, err = momentOf(c.cfg.Deadline); err != nil {
		return err
	}
	ours, theirs, err := socketPair()
	if err != nil {
		return err
	}
	defer theirs.Close()
	s := settings{deadline: c.told, margin: c.cfg.Margin, grace: c.cfg.Grace, held: len(c.cfg.Held), args: c.cfg.Args}
	args := append(append([]string{}, c.cfg.Self[1:]...), s.arguments()...)
	c.cmd = exec.Command(c.cfg.Self[0], args...)
	c.cmd.Env, c.cmd.Stdout, c.cmd.Stderr = c.cfg.Env, os.Stdout, os.Stderr
	if c.cfg.Stdin != nil {
		c.cmd.Stdin = c.cfg.Stdin
	}
	c.cmd.ExtraFiles = append([]*os.File{theirs}, c.cfg.Held...)
	// A session of its own: Ctrl-C is for the owner, and bury knows whom to look for.
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	c.cmd.Args[0] = filepath.Base(os.Args[0])
	if err := c.cmd.Start(); err != nil {
		ours.Close()
		return err
	}
	c.conn = ours
	return nil
}

// socketPair are two ends, of which the kernel closes that of a process that dies.
func socketPair() (ours *net.UnixConn, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("make a pair of sockets: %w", err)
	}
	theirs = os.NewFile(uintptr(fds[1]), "guard")
	file := os.NewFile(uintptr(fds[0]), "owner")
	defer file.Close()
	conn, err := net.FileConn(file)
	if err != nil {
		theirs.Close()
		return nil, nil, fmt.Errorf("use a pair of sockets: %w", err)
	}
	return conn.(*net.UnixConn), theirs, nil
}

// run hears what the guard says, and makes sure of the end.
func (c *Command) run() {
	defer close(c.done)
	listen(c.conn, c.hear)
	c.conn.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.gone {
		c.bury()
	}
	err := c.cmd.Wait()
	if c.gone {
		return
	}
	c.result.Err = fmt.Errorf("the guard of %s ended before the command: %w", c.cfg.Args[0], err)
	if c.result.Code == 0 {
		c.result.Code = codeSignaled + int(syscall.SIGKILL)
	}
}

// bury kills what the guard leaves behind when it dies before its time: its session,
// whose number is the guard's own and not given away before the guard is waited for.
func (c *Command) bury() {
	c.end()
	guard := c.cmd.Process.Pid
	for errors.Is(unix.Waitid(unix.P_PID, guard, nil, unix.WEXITED|unix.WNOWAIT, nil), unix.EINTR) {
	}
	left := func(p process) bool { return p.session == guard && p.pid != guard && !p.dead() }
	for signalWhere(left, unix.SIGKILL) > 0 {
		time.Sleep(lookAgain)
	}
}

func (c *Command) hear(l line) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch l.word {
	case sayFailed:
		c.result.Code, c.result.Err = int(l.number), errors.New(l.text)
		c.gone = true // it never was
	case sayExited:
		c.result.Code = int(l.number)
	case sayExpired:
		c.result.Expired = true
	case sayKilling:
		c.killing = true
	case sayGone:
		c.gone = true
	}
}

// Renew lets the guard know the deadline as it is now. Call it more often than the
// deadline, less the margin, can come near in between.
func (c *Command) Renew() {
	at, err := momentOf(c.cfg.Deadline)
	now, unread := clockNow()
	if err != nil || unread != nil {
		c.end() // without time nothing can be promised
		return
	}
	c.renewing.Lock()
	defer c.renewing.Unlock()
	if by := c.moves(at); by.Abs() >= worthTelling {
		err := c.write(line{tellDeadline, int64(at), ""})
		switch {
		case err == nil:
			c.took(at, now)
		case by < 0 && errors.Is(err, os.ErrDeadlineExceeded):
			c.end() // it would go on for too long
		}
	}
	if c.hangs(now) {
		c.end()
	}
}

// moves is by how much a deadline is later than the one that the guard knows.
func (c *Command) moves(at moment) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Duration(at - c.told)
}

// took takes note that the guard was told. One that could not be told of a later
// deadline goes on by what it knows; whether it hangs is decided by that.
func (c *Command) took(at, now moment) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.told, c.toldAt = at, now
}

// hangs reports whether the guard does not kill although it should, and has had time
// to: something keeps it from running. The kernel kills the command if it ends.
func (c *Command) hangs(now moment) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	due := max(c.told.after(-c.cfg.Margin), c.toldAt)
	return !c.killing && now >= due.after(c.cfg.Margin/2)
}

// Signal sends a signal to the command itself, not to its group.
func (c *Command) Signal(sig syscall.Signal) { c.tell(line{tellSignal, int64(sig), ""}) }

// Stop sends SIGTERM to the command's process group, and SIGCONT. It does not wait.
func (c *Command) Stop() { c.tell(line{tellStop, 0, ""}) }

// Kill kills the command and all its descendants. It does not wait.
func (c *Command) Kill() { c.tell(line{tellKill, 0, ""}) }

// tell ends a guard that does not listen; of one that has ended, run knows.
func (c *Command) tell(l line) {
	if errors.Is(c.write(l), os.ErrDeadlineExceeded) {
		c.end()
	}
}

func (c *Command) write(l line) error {
	_ = c.conn.SetWriteDeadline(time.Now().Add(tellWithin))
	_, err := c.conn.Write([]byte(l.String()))
	return err
}

// end kills the guard, and the kernel the command with it.
func (c *Command) end() { _ = c.cmd.Process.Kill() }

// Done is closed when the command and all its descendants are gone.
func (c *Command) Done() <-chan struct{} { return c.done }

// Result tells how it ended, once Done is closed.
func (c *Command) Result() Result {
	<-c.done
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.result
}
