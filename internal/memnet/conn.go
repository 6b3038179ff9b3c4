package memnet

import (
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"time"
)

// Conn is one end of a connection.
type Conn struct {
	host          *Host
	local, remote addr
	in, out       *stream
	peer          *Conn

	linger bool        // Close resets; guarded by host.net.mu
	closed bool        // likewise
	broken atomic.Bool // a call has had the error of a reset
}

// pair connects two hosts.
func pair(a, b *Host, local, remote string) (near, far *Conn) {
	there, back := newStream(), newStream()
	near = &Conn{host: a, local: addr(local), remote: addr(remote), in: back, out: there}
	far = &Conn{host: b, local: addr(remote), remote: addr(local), in: there, out: back}
	near.peer, far.peer = far, near
	return near, far
}

// Read reads what has arrived, at least one byte.
func (c *Conn) Read(b []byte) (int, error) {
	n, err := c.in.read(b)
	return n, c.wrap("read", c.once(err, io.EOF))
}

// Write returns when all of b is in the other end's buffer.
func (c *Conn) Write(b []byte) (int, error) {
	n, err := c.out.write(b)
	return n, c.wrap("write", c.once(err, os.NewSyscallError("write", syscall.EPIPE)))
}

// once gives the error of a reset to the first call that meets it, be it a read or a
// write, and then later to every other one. So does a kernel: a reader whose
// writer was first sees what looks like an end in order.
func (c *Conn) once(err, later error) error {
	if errors.Is(err, syscall.ECONNRESET) && c.broken.Swap(true) {
		return later
	}
	return err
}

func (c *Conn) wrap(op string, err error) error {
	if err == nil || err == io.EOF {
		return err
	}
	return &net.OpError{Op: op, Net: "mem", Source: c.local, Addr: c.remote, Err: err}
}

// SetLinger with 0 makes Close reset the connection, as it does for TCP.
func (c *Conn) SetLinger(sec int) error {
	n := c.host.net
	n.mu.Lock()
	defer n.mu.Unlock()
	c.linger = sec == 0
	return nil
}

// CloseWrite sends the end of stream.
func (c *Conn) CloseWrite() error {
	c.out.end(io.EOF, syscall.EPIPE)
	return nil
}

// Close ends the connection: in order, or by a reset if SetLinger(0) was called
// or data waits unread.
func (c *Conn) Close() error {
	n := c.host.net
	n.mu.Lock()
	defer n.mu.Unlock()
	c.closeLocked(c.linger)
	return nil
}

func (c *Conn) closeLocked(reset bool) {
	if c.closed {
		return
	}
	c.closed = true
	delete(c.host.net.conns, c)
	if reset || c.in.unread() {
		c.out.abort(os.NewSyscallError("read", syscall.ECONNRESET))
		c.peer.out.abort(os.NewSyscallError("write", syscall.ECONNRESET))
	}
	c.out.end(io.EOF, net.ErrClosed)
	c.in.shut(net.ErrClosed, os.NewSyscallError("write", syscall.EPIPE))
}

// LocalAddr returns this end's address.
func (c *Conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr returns the other end's address.
func (c *Conn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline sets both deadlines.
func (c *Conn) SetDeadline(t time.Time) error {
	c.in.reader.set(t)
	c.out.writer.set(t)
	return nil
}

// SetReadDeadline sets when reads fail with os.ErrDeadlineExceeded.
func (c *Conn) SetReadDeadline(t time.Time) error {
	c.in.reader.set(t)
	return nil
}

// SetWriteDeadline sets when writes fail with os.ErrDeadlineExceeded.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	c.out.writer.set(t)
	return nil
}
