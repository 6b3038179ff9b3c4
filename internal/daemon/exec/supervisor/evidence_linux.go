package supervisor

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Evidence are the connections of this process whose end other members take as proof of
// its death, and so of the death of its work. Those that are open when a command starts,
// and those that come while it runs, stay open until the command and all its descendants
// are gone. The zero value has none. It is safe for concurrent use.
type Evidence struct {
	mu      sync.Mutex
	conns   []syscall.RawConn
	command *Command // the newest; nil if there was none
}

// Hold adds a connection. If it returns nil, a command that runs holds the connection by
// then. Connections that this process has reset, or that the other end has ended, are
// forgotten when the next one is added.
func (e *Evidence) Hold(conn net.Conn) error {
	raw, err := rawConn(conn)
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	closed := func(raw syscall.RawConn) bool { return raw.Control(func(uintptr) {}) != nil }
	e.conns = slices.DeleteFunc(e.conns, closed)
	if e.command != nil {
		if err := e.command.hold(raw); err != nil {
			return fmt.Errorf("let the supervisor hold a connection to %s: %w", conn.RemoteAddr(), err)
		}
	}
	e.conns = append(e.conns, raw)
	return nil
}

func rawConn(file any) (syscall.RawConn, error) {
	source, ok := file.(syscall.Conn)
	if !ok {
		return nil, fmt.Errorf("a %T cannot be held: it has no file", file)
	}
	raw, err := source.SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("file of a %T: %w", file, err)
	}
	return raw, nil
}

// Start starts a command that holds the evidence; the command before it has ended. The
// error is why there is no supervisor; that the command could not be started is in its
// Result. Renew has to tell the supervisor how the deadline moves: it kills the command
// otherwise.
func (e *Evidence) Start(cfg Config) (*Command, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	var copies []*os.File
	defer func() {
		for _, f := range copies {
			f.Close()
		}
	}()
	for _, file := range cfg.Held {
		raw, err := rawConn(file)
		if err == nil {
			copies, err = appendCopy(copies, raw)
		}
		if err != nil {
			return nil, err
		}
	}
	for _, raw := range e.conns {
		var err error
		copies, err = appendCopy(copies, raw)
		if err != nil && !errors.Is(err, net.ErrClosed) { // one that ended shows nothing more
			return nil, err
		}
	}
	c, err := start(cfg, copies)
	if err == nil {
		e.command = c
	}
	return c, err
}

// appendCopy opens a file once more; it is closed whenever the copy says so.
func appendCopy(copies []*os.File, raw syscall.RawConn) ([]*os.File, error) {
	var number int
	var err error
	closed := raw.Control(func(fd uintptr) {
		number, err = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0)
	})
	switch {
	case closed != nil:
		return copies, fmt.Errorf("hold a file open: %w: %w", net.ErrClosed, closed)
	case err != nil:
		return copies, fmt.Errorf("hold a file open: %w", err)
	}
	return append(copies, os.NewFile(uintptr(number), "held")), nil
}

// hold sends the supervisor a connection. It is held as soon as it is sent: while it
// waits to be received it belongs to the socket, which ends with the supervisor.
func (c *Command) hold(raw syscall.RawConn) error {
	var err error
	_ = c.conn.SetWriteDeadline(time.Now().Add(sendTimeout)) // fails as the write does
	closed := raw.Control(func(fd uintptr) {
		packet := message{Word: tellHold}.encode()
		_, _, err = c.conn.WriteMsgUnix(packet, unix.UnixRights(int(fd)), nil)
	})
	select {
	case <-c.done:
		return nil // nothing of the command is left
	default:
	}
	if closed != nil {
		return closed
	}
	return err
}

// keep adds what the owner sent along with a message, and closes connections that prove
// nothing any more.
func (s *supervisor) keep(control []byte) {
	messages, err := unix.ParseSocketControlMessage(control)
	for _, m := range messages {
		var sent []int
		if err == nil {
			sent, err = unix.ParseUnixRights(&m)
		}
		s.kept = append(s.kept, sent...)
	}
	s.kept = slices.DeleteFunc(s.kept, func(fd int) bool { return over(fd) && unix.Close(fd) == nil })
}

// over reports whether a file is a connection that one of its ends has ended. The owner
// ends one by a reset, which the kernel sends when no process holds it any more.
func over(fd int) bool {
	info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
	if err != nil {
		return false
	}
	linger, err := unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_LINGER)
	resets := err == nil && linger != 0 // the option is set for a reset only
	return resets ||
		info.State != unix.BPF_TCP_ESTABLISHED && info.State != unix.BPF_TCP_LISTEN
}
