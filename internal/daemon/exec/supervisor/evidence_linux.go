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

// Evidence are the connections of this process whose end proves its death to other members, and so
// the end of its work. A command holds those that are open when it starts, and those that are added
// while it runs: they stay open until the command and all its descendants are gone. The zero value
// has none. It is safe for concurrent use.
type Evidence struct {
	mu      sync.Mutex
	conns   []syscall.RawConn
	command *Command // the newest; nil if there was none
}

// Hold adds a connection. When it returns nil, a running command holds the connection too. It
// forgets connections that this process has reset or that the other end has ended.
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

// Start starts a command that holds the evidence; the command before it must have ended. An error
// says why there is no supervisor. If the supervisor could not start the command, the Result says
// why. The caller must call Renew as the deadline moves: otherwise the supervisor kills the
// command.
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
		if err != nil && !errors.Is(err, net.ErrClosed) { // a closed one proves nothing
			return nil, err
		}
	}
	c, err := start(cfg, copies)
	if err == nil {
		e.command = c
	}
	return c, err
}

// appendCopy duplicates a file, so that it stays open when its owner closes it.
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

// hold sends the supervisor a connection. The connection is held from then on: until the supervisor
// receives it, it belongs to the socket, which ends with the supervisor.
func (c *Command) hold(raw syscall.RawConn) error {
	var err error
	_ = c.conn.SetWriteDeadline(time.Now().Add(sendTimeout)) // an error comes with the write
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

// keep adds the files that came with a message, and closes connections that prove nothing any more.
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

// over reports whether one end of a connection has ended it. The owner ends a connection by a
// reset, which the kernel sends when no process holds the connection any more.
func over(fd int) bool {
	info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
	if err != nil {
		return false
	}
	linger, err := unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_LINGER)
	resets := err == nil && linger != 0 // the option is only set for a reset
	return resets ||
		info.State != unix.BPF_TCP_ESTABLISHED && info.State != unix.BPF_TCP_LISTEN
}
