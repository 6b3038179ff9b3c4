package supervisor

import (
	"encoding/json"
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
	// sendTimeout bounds how long a supervisor may take to read a message.
	sendTimeout = 100 * time.Millisecond
	// worthSending is the least change of a deadline that is sent.
	worthSending = time.Millisecond
	// killPause is the pause between two searches for processes to kill.
	killPause = 5 * time.Millisecond
	// maxMessage is the most bytes of a packet; only the text of an error can be long.
	maxMessage = 64 << 10
)

// Command is a command that runs, or has run, under a supervisor.
type Command struct {
	cfg  Config
	cmd  *exec.Cmd // the supervisor
	conn *net.UnixConn
	over chan struct{} // closed when the supervisor has ended
	done chan struct{}

	killAll sync.Once // of killFamily

	mu         sync.Mutex
	known      moment // the deadline that the supervisor knows
	knownSince moment
	killing    bool // the supervisor said that it kills
	gone       bool // the supervisor said that nothing is left
	result     Result
}

// start starts a command that holds these files besides those of the configuration.
func start(cfg Config, held []*os.File) (c *Command, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("start the supervisor of %s: %w", cfg.Args[0], err)
		}
	}()
	if err := probeClock(); err != nil {
		return nil, err
	}
	c = &Command{cfg: cfg, over: make(chan struct{}), done: make(chan struct{}),
		known: momentOf(cfg.Deadline)}
	// The kernel closes the socket of a process that dies, and keeps packets apart.
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("make a pair of sockets: %w", err)
	}
	ours, theirs := os.NewFile(uintptr(ends[0]), "owner"), os.NewFile(uintptr(ends[1]), "supervisor")
	defer ours.Close()
	defer theirs.Close()
	conn, err := net.FileConn(ours)
	if err != nil {
		return nil, fmt.Errorf("use a pair of sockets: %w", err)
	}
	c.conn = conn.(*net.UnixConn)
	s, err := json.Marshal(settings{
		Deadline: c.known, Margin: cfg.Margin, Grace: cfg.Grace, Held: len(held),
	})
	if err != nil {
		return nil, err
	}
	self := append(append([]string{}, cfg.Self...), string(s))
	c.cmd = exec.Command(self[0], append(self[1:], cfg.Args...)...)
	c.cmd.Args[0] = filepath.Base(os.Args[0])
	c.cmd.Env, c.cmd.Stdout, c.cmd.Stderr = cfg.Env, os.Stdout, os.Stderr
	if cfg.Stdin != nil {
		c.cmd.Stdin = cfg.Stdin
	}
	c.cmd.ExtraFiles = append([]*os.File{theirs}, held...)
	// A session of its own: Ctrl-C is for the owner, and killSession finds it.
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := c.cmd.Start(); err != nil {
		c.conn.Close()
		return nil, err
	}
	go c.run()
	return c, nil
}

// run receives what the supervisor says, until nothing of the command is left.
func (c *Command) run() {
	defer close(c.done)
	c.listen()
	close(c.over)
	c.conn.Close()
	c.killAll.Do(c.killFamily) // this does nothing if nothing is left
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.gone {
		c.killSession()
	}
	err := c.cmd.Wait()
	switch {
	case c.gone:
		return
	case err == nil:
		c.result.Err = fmt.Errorf("the supervisor of %s ended without a word of the command's end",
			c.cfg.Args[0])
	default:
		c.result.Err = fmt.Errorf("the supervisor of %s ended before the command: %w",
			c.cfg.Args[0], err)
	}
	if c.result.Code == 0 {
		c.result.Code = codeSignaled + int(syscall.SIGKILL)
	}
}

// listen receives until the supervisor has gone.
func (c *Command) listen() {
	packet := make([]byte, maxMessage)
	for {
		n, err := c.conn.Read(packet)
		if errors.Is(err, syscall.ECONNRESET) {
			continue // it left something unread; its last words follow this error
		}
		var m message
		if err != nil || n == 0 || json.Unmarshal(packet[:n], &m) != nil {
			return
		}
		started := func() {}
		c.mu.Lock()
		switch m.Word {
		case sayFailed:
			c.result.Code, c.result.Err = int(m.Number), errors.New(m.Text)
			c.gone = true // there never was a command
		case sayLate:
			c.result, c.gone = Result{Code: CodeNotExecutable, Expired: true, Err: ErrLate}, true
		case sayStarted:
			started = c.cfg.Started
		case sayExited:
			c.result.Code = int(m.Number)
		case sayExpired:
			c.result.Expired = true
		case sayKilling:
			c.killing = true
		case sayGone:
			c.gone = true
		}
		c.mu.Unlock()
		started()
	}
}

// end kills everything, also the supervisor. It does not wait.
func (c *Command) end() { go c.killAll.Do(c.killFamily) }

// killFamily kills all descendants of the supervisor, and the supervisor last: while it exists,
// even stopped, daemons are its children and can be found. It gets some time to say how the command
// ended, because both processes may have slept past the deadline and wake together.
func (c *Command) killFamily() {
	id := c.cmd.Process.Pid
	below := func(p process) bool { return !p.dead() && p.descendsFrom(id) }
	told := time.Now().Add(c.cfg.Margin / 2)
	for signalWhere(below, unix.SIGKILL) > 0 || !c.isOver() && time.Now().Before(told) {
		time.Sleep(killPause)
	}
	_ = c.cmd.Process.Kill()
}

func (c *Command) isOver() bool {
	select {
	case <-c.over:
		return true
	default:
		return false
	}
}

// killSession kills the session of a supervisor that another process has killed. Its number is the
// process ID of the supervisor, which no other process gets before the supervisor is waited for.
func (c *Command) killSession() {
	id := c.cmd.Process.Pid
	for errors.Is(unix.Waitid(unix.P_PID, id, nil, unix.WEXITED|unix.WNOWAIT, nil), unix.EINTR) {
	}
	left := func(p process) bool { return p.session == id && p.pid != id && !p.dead() }
	for signalWhere(left, unix.SIGKILL) > 0 {
		time.Sleep(killPause)
	}
}

// Renew tells the supervisor the present deadline. Call it more often than the deadline can come
// near the margin.
func (c *Command) Renew() {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, now := momentOf(c.cfg.Deadline), clockNow()
	if by := time.Duration(at - c.known); by.Abs() >= worthSending {
		err := c.write(message{Word: tellDeadline, Number: int64(at)})
		switch {
		case err == nil:
			c.known, c.knownSince = at, now
		case by < 0 && errors.Is(err, os.ErrDeadlineExceeded):
			c.expire() // otherwise the command would go on for too long
		}
	}
	// A supervisor that does not read knows an older deadline. If it should have killed by that
	// deadline and has not, although there was time since this process last ran, something keeps it
	// from running. Then this process kills.
	due := max(c.known.after(-c.cfg.Margin), c.knownSince)
	if !c.killing && now >= due.after(c.cfg.Margin/2) {
		c.expire()
	}
}

// expire kills everything because the deadline came near. The caller holds the lock.
func (c *Command) expire() {
	c.result.Expired = true
	c.end()
}

// Signal sends a signal to the command itself, not to its group.
func (c *Command) Signal(sig syscall.Signal) {
	c.tell(message{Word: tellSignal, Number: int64(sig)})
}

// Stop sends SIGTERM to the command's process group, and SIGCONT. It does not wait.
func (c *Command) Stop() { c.tell(message{Word: tellStop}) }

// Kill kills the command and all its descendants. It does not wait.
func (c *Command) Kill() { c.tell(message{Word: tellKill}) }

// tell kills a supervisor that does not read. If it has ended, run notices that.
func (c *Command) tell(m message) {
	if errors.Is(c.write(m), os.ErrDeadlineExceeded) {
		c.end()
	}
}

func (c *Command) write(m message) error {
	_ = c.conn.SetWriteDeadline(time.Now().Add(sendTimeout)) // an error comes with the write
	_, err := c.conn.Write(m.encode())
	return err
}

// Done is closed when the command and all its descendants are gone.
func (c *Command) Done() <-chan struct{} { return c.done }

// Result returns how the command ended, once Done is closed.
func (c *Command) Result() Result {
	<-c.done
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.result
}
