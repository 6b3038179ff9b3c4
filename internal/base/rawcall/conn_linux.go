//go:build !race

package rawcall

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
)

// conn is a TCP connection whose reads and writes are raw calls. Whoever has to wait does
// so in Go's poller, as with any connection.
type conn struct {
	*net.TCPConn

	reads, writes half
}

// Conn returns c with raw calls, if it is of TCP.
func Conn(c net.Conn) net.Conn {
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return c
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return c
	}
	b := &conn{TCPConn: tcp}
	b.reads.init("read", raw.Read, Read)
	b.writes.init("write", raw.Write, Write)
	return b
}

// half is one direction of a connection.
type half struct {
	name  string
	await func(try func(fd uintptr) bool) error // calls try until it is true, or the deadline
	try   func(fd uintptr) bool                 // made once: it would take memory

	mu  sync.Mutex // held by whoever reads or writes
	b   []byte
	n   int
	err error
}

func (h *half) init(
	name string, await func(func(uintptr) bool) error, call func(uintptr, []byte) (int, error),
) {
	h.name, h.await = name, await
	h.try = func(fd uintptr) bool {
		h.n, h.err = call(fd, h.b)
		return h.err != syscall.EAGAIN
	}
}

// transfer makes one call, when it need not block any more. Called with mu held.
func (h *half) transfer(c *net.TCPConn, b []byte) (int, error) {
	h.b, h.n, h.err = b, 0, nil
	err := h.await(h.try)
	h.b = nil
	switch op, ok := err.(*net.OpError); {
	case ok:
		op.Op = h.name // as the connection itself names it
	case h.err != nil:
		err = &net.OpError{
			Op: h.name, Net: "tcp", Source: c.LocalAddr(), Addr: c.RemoteAddr(),
			Err: os.NewSyscallError(h.name, h.err),
		}
	}
	return h.n, err
}

// Read is that of net.Conn.
func (c *conn) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	c.reads.mu.Lock()
	defer c.reads.mu.Unlock()
	n, err := c.reads.transfer(c.TCPConn, b)
	if n == 0 && err == nil {
		err = io.EOF
	}
	return n, err
}

// Write is that of net.Conn: nothing comes between the parts of b.
func (c *conn) Write(b []byte) (n int, err error) {
	c.writes.mu.Lock()
	defer c.writes.mu.Unlock()
	for n < len(b) && err == nil {
		var more int
		more, err = c.writes.transfer(c.TCPConn, b[n:])
		n += more
	}
	return n, err
}
