package guard

import (
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Evidence are the connections of this process whose end others take for its death, and
// with it for that of its work. Those that are there when a command starts, and those that
// come while it runs, stay open until the command and all its descendants are gone. The
// zero value has none. It is safe for concurrent use.
type Evidence struct {
	mu      sync.Mutex
	conns   []syscall.RawConn
	command *Command // the newest; nil if there was none
}

// Hold adds a connection. If it returns nil, a command that runs holds the connection by
// then. Connections that this process has reset, or that the other end has ended, are let
// go of when the next one is added.
func (e *Evidence) Hold(conn net.Conn) error {
	source, ok := conn.(syscall.Conn)
	if !ok {
		return fmt.Errorf("a %T cannot be held: it has no file", conn)
	}
	raw, err := source.SyscallConn()
	if err != nil {
		return fmt.Errorf("file of a connection to %s: %w", conn.RemoteAddr(), err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.conns = slices.DeleteFunc(e.conns, closed)
	if e.command != nil {
		if err := e.command.hold(raw); err != nil {
			return fmt.Errorf("let the guard hold a connection to %s: %w", conn.RemoteAddr(), err)
		}
	}
	e.conns = append(e.conns, raw)
	return nil
}

// closed reports whether a connection is closed in this process.
func closed(raw syscall.RawConn) bool { return raw.Control(func(uintptr) {}) != nil }

// Start is the function Start for a command that holds the evidence. The one before it has
// ended.
func (e *Evidence) Start(cfg Config) (*Command, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	var copies []*os.File
	defer func() { Release(copies) }()
	for _, raw := range e.conns {
		again, err := duplicate(raw)
		if err != nil {
			return nil, err
		}
		if again != nil {
			copies = append(copies, again)
		}
	}
	cfg.Held = append(slices.Clone(cfg.Held), copies...)
	c, err := Start(cfg)
	if err == nil {
		e.command = c
	}
	return c, err
}

// duplicate opens the file of a connection once more; nil if the connection is closed.
func duplicate(raw syscall.RawConn) (again *os.File, err error) {
	gone := raw.Control(func(fd uintptr) {
		var number int
		if number, err = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0); err == nil {
			again = os.NewFile(uintptr(number), "evidence")
		}
	})
	if gone == nil && err != nil {
		return nil, fmt.Errorf("open a connection once more: %w", err)
	}
	return again, nil
}

// hold sends the guard a connection. It is held as soon as it is sent: while it waits to be
// received it belongs to the socket between the two, which ends with the guard.
func (c *Command) hold(raw syscall.RawConn) error {
	var err error
	_ = c.conn.SetWriteDeadline(time.Now().Add(tellWithin)) // fails as the write does
	gone := raw.Control(func(fd uintptr) {
		_, _, err = c.conn.WriteMsgUnix([]byte(line{tellHold, 0, ""}.String()), unix.UnixRights(int(fd)), nil)
	})
	select {
	case <-c.done:
		return nil // nothing of the command is left
	default:
	}
	if gone != nil {
		return gone
	}
	return err
}

// keep adds what the owner sent along with a line, and lets go of connections that tell
// nobody anything any more.
func (g *guard) keep(control []byte) {
	messages, err := unix.ParseSocketControlMessage(control)
	for _, m := range messages {
		var sent []int
		if err == nil {
			sent, err = unix.ParseUnixRights(&m)
		}
		g.kept = append(g.kept, sent...)
	}
	g.kept = slices.DeleteFunc(g.kept, func(fd int) bool { return over(fd) && unix.Close(fd) == nil })
}

// over reports whether a file is a connection that one of its ends has ended. The owner
// ends one by a reset, which the kernel sends when nobody holds it any more.
func over(fd int) bool {
	info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
	if err != nil {
		return false
	}
	linger, err := unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_LINGER)
	resets := err == nil && linger != 0 // the option is set for a reset only
	return resets || info.State != unix.BPF_TCP_ESTABLISHED && info.State != unix.BPF_TCP_LISTEN
}
