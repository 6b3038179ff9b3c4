package memnet

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
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
	way           path // to the peer
	// failure is set by a reset. As in a kernel whichever comes first, a read or
	// a write, takes the error; a read after it returns io.EOF.
	failure atomic.Bool

	linger bool // Close resets; guarded by host.net.mu
	closed bool // likewise
}

// errReset stands for a reset within a stream.
var errReset = errors.New("reset")

// pair connects two hosts.
func pair(a, b *Host, local, remote string) (near, far *Conn) {
	stream := func(from, to *Host) *stream {
		s := &stream{}
		s.change = sync.NewCond(&s.mu)
		s.reader, s.writer = deadline{s: s, host: to}, deadline{s: s, host: from}
		return s
	}
	there, back := stream(a, b), stream(b, a)
	near = &Conn{
		host: a, local: addr(local), remote: addr(remote), in: back, out: there,
		way: path{net: a.net, from: a.name, to: b.name},
	}
	far = &Conn{
		host: b, local: addr(remote), remote: addr(local), in: there, out: back, peer: near,
		way: path{net: a.net, from: b.name, to: a.name},
	}
	near.peer = far
	return near, far
}

// Read reads what has arrived, at least one byte.
func (c *Conn) Read(b []byte) (int, error) {
	n, err := c.in.read(b)
	if err == errReset {
		if lag := c.host.net.lag; lag != nil {
			time.Sleep(lag())
		}
		err = io.EOF
		if c.failure.CompareAndSwap(true, false) {
			err = os.NewSyscallError("read", syscall.ECONNRESET)
		}
	}
	return n, c.wrap("read", err)
}

// Write returns when all of b is in the other end's buffer, or on its way.
func (c *Conn) Write(b []byte) (n int, err error) {
	for len(b) > 0 && err == nil {
		var chunk []byte
		chunk, err = c.out.accept(b)
		if len(chunk) > 0 {
			c.way.send(packet{&c.way, func() { c.deliver(chunk) }, c.reset})
		}
		b, n = b[len(chunk):], n+len(chunk)
	}
	if err == errReset {
		err = os.NewSyscallError("write", syscall.EPIPE)
		if c.failure.CompareAndSwap(true, false) {
			err = os.NewSyscallError("write", syscall.ECONNRESET)
		}
	}
	return n, c.wrap("write", err)
}

// deliver puts what was written into the other end's buffer. A closed end answers
// with a reset, as does a firewall that rejects the acknowledgement.
func (c *Conn) deliver(chunk []byte) {
	if !c.out.deliver(chunk) {
		c.peer.way.send(packet{&c.peer.way, c.reset, func() {}})
		return
	}
	if c.host.net.rule(c.peer.host.name, c.host.name) == Reject {
		c.peer.reset()
	}
}

// reset is the arrival of a reset.
func (c *Conn) reset() {
	c.failure.Store(true)
	c.out.end(nil, errReset)
	c.in.end(errReset, nil)
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
	c.host.pass()
	c.out.end(nil, syscall.EPIPE)
	c.finish()
	return nil
}

func (c *Conn) finish() {
	c.way.send(packet{&c.way, func() { c.out.end(io.EOF, nil) }, c.reset})
}

// Close ends the connection: in order, or by a reset if SetLinger(0) was called
// or data waits unread.
func (c *Conn) Close() error {
	c.host.pass()
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
	unread := c.in.shut()
	c.out.end(nil, net.ErrClosed)
	if reset || unread {
		c.way.send(packet{&c.way, c.peer.reset, func() {}})
		return
	}
	c.finish()
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
