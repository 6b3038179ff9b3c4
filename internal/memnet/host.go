package memnet

import (
	"context"
	"net"
	"os"
	"syscall"
)

// Host is one process on a host, and its way to use the network.
type Host struct {
	net  *Network
	name string
	dead bool

	stopped chan struct{} // closed when the process goes on; nil while it runs
}

// Stop stops the process as SIGSTOP does: none of its calls returns, and nothing that has
// arrived counts as read. Its kernel goes on.
func (h *Host) Stop() {
	h.net.mu.Lock()
	defer h.net.mu.Unlock()
	if h.stopped == nil && !h.dead {
		h.stopped = make(chan struct{})
	}
}

// Continue lets a stopped process go on, as SIGCONT does.
func (h *Host) Continue() {
	h.net.mu.Lock()
	defer h.net.mu.Unlock()
	h.resume()
}

// Stopped reports whether the process is stopped.
func (h *Host) Stopped() bool {
	h.net.mu.Lock()
	defer h.net.mu.Unlock()
	return h.stopped != nil
}

// Wait waits while the process is stopped.
func (h *Host) Wait() {
	h.net.mu.Lock()
	defer h.net.mu.Unlock()
	h.pass()
}

// pass waits while the process is stopped. The caller holds net.mu, which pass releases
// while it waits.
func (h *Host) pass() {
	for h.stopped != nil {
		stopped := h.stopped
		h.net.mu.Unlock()
		<-stopped
		h.net.mu.Lock()
	}
}

// resume is called with net.mu held.
func (h *Host) resume() {
	if h.stopped != nil {
		close(h.stopped)
		h.stopped = nil
	}
}

// bind returns the address to listen on, with a port; port 0 picks one. Called with mu held.
func (h *Host) bind(address string, taken func(string) bool) (string, error) {
	if h.dead {
		return "", opError("listen", address, net.ErrClosed)
	}
	address, err := h.net.pick(address)
	if err == nil && taken(address) {
		err = opError("listen", address, os.NewSyscallError("bind", syscall.EADDRINUSE))
	}
	return address, err
}

// Listen listens on address, host:port; port 0 picks one.
func (h *Host) Listen(address string) (net.Listener, error) {
	n := h.net
	n.mu.Lock()
	defer n.mu.Unlock()
	address, err := h.bind(address, func(a string) bool { return n.listeners[a] != nil })
	if err != nil {
		return nil, err
	}
	l := &listener{
		host: h, address: address, backlog: make(chan *Conn, backlog), closed: make(chan struct{}),
	}
	n.listeners[address] = l
	return l, nil
}

// Dial connects to whoever listens on address, or fails with
// syscall.ECONNREFUSED: at once, if nothing delays it.
func (h *Host) Dial(ctx context.Context, address string) (net.Conn, error) {
	n := h.net
	n.mu.Lock()
	defer n.mu.Unlock()
	h.pass()
	defer h.pass()
	to, _, err := net.SplitHostPort(address)
	if err == nil {
		err = ctx.Err()
	}
	if err == nil {
		n.mu.Unlock()
		err = n.shakeHands(ctx, h.name, to)
		n.mu.Lock()
	}
	l := n.listeners[address]
	switch {
	case err != nil:
		return nil, opError("dial", address, err)
	case h.dead:
		return nil, opError("dial", address, net.ErrClosed)
	case l == nil || len(l.backlog) == cap(l.backlog):
		return nil, opError("dial", address, errRefused)
	}
	local, err := n.pick(net.JoinHostPort(h.name, "0"))
	if err != nil {
		return nil, err
	}
	near, far := pair(h, l.host, local, address)
	l.backlog <- far // there is room
	n.conns[near], n.conns[far] = struct{}{}, struct{}{}
	return near, nil
}

// backlog is how many connections wait to be accepted.
const backlog = 128

type listener struct {
	host    *Host
	address string
	backlog chan *Conn
	closed  chan struct{}
}

// Accept waits for a connection. It fails with net.ErrClosed after Close.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.backlog:
		l.host.net.mu.Lock()
		defer l.host.net.mu.Unlock()
		l.host.pass()
		return c, nil
	case <-l.closed: // closeLocked has emptied the backlog
		return nil, opError("accept", l.address, net.ErrClosed)
	}
}

// Close stops listening; connections that nobody accepted are reset.
func (l *listener) Close() error {
	n := l.host.net
	n.mu.Lock()
	defer n.mu.Unlock()
	l.closeLocked()
	return nil
}

func (l *listener) closeLocked() {
	if isClosed(l.closed) {
		return
	}
	close(l.closed)
	delete(l.host.net.listeners, l.address)
	for {
		select {
		case c := <-l.backlog:
			c.closeLocked(true)
		default:
			return
		}
	}
}

// Addr returns the address that is listened on.
func (l *listener) Addr() net.Addr { return addr(l.address) }
