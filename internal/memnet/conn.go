package memnet

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// capacity is how much waits at one end before the other end's writer blocks, in bytes.
const capacity = 256 << 10

// Conn is one end of a connection. Its fields are guarded by Network.mu.
type Conn struct {
	host          *Host
	local, remote addr
	peer          *Conn
	change        *sync.Cond // of both ends

	data          []byte // that has arrived
	flying        int    // bytes that are on their way to the peer
	readErr       error  // for the reader, after the data
	writeErr      error  // for the writer, at once
	reads, writes deadline
	sent, last    time.Time // when the newest packet to the peer left, and when it arrives
	// failure is set by a reset. As in a kernel, the next read or write returns the error
	// and clears it; a read after that returns io.EOF.
	failure bool
	linger  bool // Close resets
	closed  bool
}

// errReset stands for a reset in readErr and writeErr.
var errReset = errors.New("reset")

// pair connects two hosts.
func pair(a, b *Host, local, remote string) (near, far *Conn) {
	change := sync.NewCond(&a.net.mu)
	near = &Conn{host: a, local: addr(local), remote: addr(remote), change: change}
	far = &Conn{host: b, local: addr(remote), remote: addr(local), change: change, peer: near}
	near.peer = far
	return near, far
}

// Read reads what has arrived, at least one byte.
func (c *Conn) Read(b []byte) (int, error) {
	n := c.host.net
	n.mu.Lock()
	defer n.mu.Unlock()
	for {
		c.host.pass()
		switch {
		case c.reads.passed():
			return 0, c.wrap("read", os.ErrDeadlineExceeded)
		case len(c.data) > 0:
			size := copy(b, c.data)
			c.data = c.data[size:]
			c.change.Broadcast()
			return size, nil
		case c.readErr == errReset:
			if n.lag != nil {
				n.mu.Unlock()
				time.Sleep(n.lag())
				n.mu.Lock()
			}
			if !c.failure {
				return 0, io.EOF
			}
			c.failure = false
			return 0, c.wrap("read", os.NewSyscallError("read", syscall.ECONNRESET))
		case c.readErr != nil:
			return 0, c.wrap("read", c.readErr)
		case len(b) == 0:
			return 0, nil
		}
		c.change.Wait()
	}
}

// Write returns when all of b is in the other end's buffer, or on its way.
func (c *Conn) Write(b []byte) (size int, err error) {
	c.host.net.mu.Lock()
	defer c.host.net.mu.Unlock()
	for len(b) > 0 {
		c.host.pass()
		room := capacity - len(c.peer.data) - c.flying
		switch {
		case c.writeErr == errReset:
			err := os.NewSyscallError("write", syscall.EPIPE)
			if c.failure {
				c.failure, err = false, os.NewSyscallError("write", syscall.ECONNRESET)
			}
			return size, c.wrap("write", err)
		case c.writeErr != nil:
			return size, c.wrap("write", c.writeErr)
		case c.writes.passed():
			return size, c.wrap("write", os.ErrDeadlineExceeded)
		case room <= 0:
			c.change.Wait()
			continue
		}
		chunk := bytes.Clone(b[:min(room, len(b))])
		c.flying += len(chunk)
		b, size = b[len(chunk):], size+len(chunk)
		packet{c, len(chunk), func() { c.deliver(chunk) }, c.reset}.send()
	}
	return size, nil
}

// deliver puts data into the other end's buffer. A closed end answers with a reset, and so
// does a firewall that rejects the acknowledgement.
func (c *Conn) deliver(chunk []byte) {
	c.flying -= len(chunk)
	if c.peer.closed {
		packet{c.peer, 0, c.reset, func() {}}.send()
		return
	}
	if c.peer.readErr == nil {
		c.peer.data = append(c.peer.data, chunk...)
	}
	c.change.Broadcast()
	if c.host.net.rules[[2]string{c.peer.host.name, c.host.name}] == Reject {
		c.peer.reset()
	}
}

// reset is called when a reset arrives. The data that was not read is lost.
func (c *Conn) reset() {
	c.failure = true
	if c.readErr == nil {
		c.data = nil
	}
	c.end(errReset, errReset)
}

// end makes reads fail after the data that has arrived, and writes at once. An error that is
// set already stays; nil sets none.
func (c *Conn) end(readErr, writeErr error) {
	if c.readErr == nil {
		c.readErr = readErr
	}
	if c.writeErr == nil {
		c.writeErr = writeErr
	}
	c.change.Broadcast()
}

func (c *Conn) wrap(op string, err error) error {
	if err == io.EOF {
		return err
	}
	return &net.OpError{Op: op, Net: "mem", Source: c.local, Addr: c.remote, Err: err}
}

// SetLinger with 0 makes Close reset the connection, as it does for TCP.
func (c *Conn) SetLinger(sec int) error {
	c.host.net.mu.Lock()
	defer c.host.net.mu.Unlock()
	c.linger = sec == 0
	return nil
}

// CloseWrite sends the end of stream.
func (c *Conn) CloseWrite() error {
	c.host.net.mu.Lock()
	defer c.host.net.mu.Unlock()
	c.host.pass()
	c.end(nil, syscall.EPIPE)
	c.finish()
	return nil
}

func (c *Conn) finish() {
	packet{c, 0, func() { c.peer.end(io.EOF, nil) }, c.reset}.send()
}

// Close ends the connection: by an end of stream, or by a reset if SetLinger(0) was called
// or data has not been read.
func (c *Conn) Close() error {
	c.host.net.mu.Lock()
	defer c.host.net.mu.Unlock()
	c.host.pass()
	c.closeLocked(c.linger)
	return nil
}

func (c *Conn) closeLocked(reset bool) {
	if c.closed {
		return
	}
	c.closed = true
	delete(c.host.net.conns, c)
	unread := len(c.data) > 0
	c.data, c.readErr = nil, net.ErrClosed
	c.end(nil, net.ErrClosed)
	if reset || unread {
		packet{c, 0, c.peer.reset, func() {}}.send()
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
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// SetReadDeadline sets when reads fail with os.ErrDeadlineExceeded.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.setDeadline(&c.reads, t) }

// SetWriteDeadline sets when writes fail with os.ErrDeadlineExceeded.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.setDeadline(&c.writes, t) }

// deadline is that of an end's reads or writes.
type deadline struct {
	at    time.Time
	timer *time.Timer
}

func (d *deadline) passed() bool { return !d.at.IsZero() && !time.Now().Before(d.at) }

// setDeadline arms a deadline; the zero time disarms it.
func (c *Conn) setDeadline(d *deadline, t time.Time) error {
	mu := &c.host.net.mu
	mu.Lock()
	defer mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
	}
	if d.at = t; !t.IsZero() {
		d.timer = time.AfterFunc(time.Until(t), func() {
			mu.Lock()
			defer mu.Unlock()
			c.change.Broadcast()
		})
	}
	c.change.Broadcast()
	return nil
}
