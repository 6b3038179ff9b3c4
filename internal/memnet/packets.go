package memnet

import (
	"bytes"
	"net"
	"time"
)

// packetRoom is how many datagrams wait at a socket; more are lost.
const packetRoom = 256

// Lose loses every datagram for which lost returns true, and nothing else: connections are not
// affected. nil loses none. It may be called at any time, and lost from any goroutine.
func (n *Network) Lose(lost func(from, to string) bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lose = lost
}

// Late lets datagrams come later than all else.
func (n *Network) Late(by time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.late = by
}

// packets is a socket for datagrams. They are lost if nobody listens where they go, if the firewall
// does not let them pass, or by Lose. Each takes its own time, so they may overtake each other.
type packets struct {
	net.PacketConn // nil: there are no deadlines

	host    *Host
	address addr
	came    chan datagram
	closed  chan struct{}
}

type datagram struct {
	from addr
	data []byte
}

// ListenPacket listens for datagrams on address, host:port; port 0 picks one. The ports are not
// those of Listen.
func (h *Host) ListenPacket(address string) (net.PacketConn, error) {
	n := h.net
	n.mu.Lock()
	defer n.mu.Unlock()
	address, err := h.bind(address, func(a string) bool { return n.packets[a] != nil })
	if err != nil {
		return nil, err
	}
	p := &packets{
		host: h, address: addr(address), came: make(chan datagram, packetRoom),
		closed: make(chan struct{}),
	}
	n.packets[address] = p
	return p, nil
}

// ReadFrom waits for a datagram. It fails with net.ErrClosed after Close.
func (p *packets) ReadFrom(b []byte) (int, net.Addr, error) {
	select {
	case <-p.closed:
	case d := <-p.came:
		if p.host.Wait(); !isClosed(p.closed) {
			return copy(b, d.data), d.from, nil
		}
	}
	return 0, nil, opError("read", string(p.address), net.ErrClosed)
}

// WriteTo sends a datagram. That it is lost is no error. It never waits: what a stopped process
// sends is lost, too.
func (p *packets) WriteTo(b []byte, to net.Addr) (int, error) {
	n := p.host.net
	n.mu.Lock()
	defer n.mu.Unlock()
	there, _, err := net.SplitHostPort(to.String())
	if err == nil && isClosed(p.closed) {
		err = net.ErrClosed
	}
	if err != nil {
		return 0, opError("write", to.String(), err)
	}
	here, _, _ := net.SplitHostPort(string(p.address)) // it was listened on
	d, late := datagram{p.address, bytes.Clone(b)}, n.late
	if n.latency != nil {
		late += n.latency(here, there)
	}
	switch {
	case p.host.stopped != nil, n.rules[[2]string{here, there}] != Pass,
		n.lose != nil && n.lose(here, there):
	case n.latency == nil && late == 0:
		n.deliver(to.String(), d)
	default:
		time.AfterFunc(late, func() {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.deliver(to.String(), d)
		})
	}
	return len(b), nil
}

// deliver is called with mu held.
func (n *Network) deliver(to string, d datagram) {
	if p := n.packets[to]; p != nil {
		select {
		case p.came <- d:
		default:
		}
	}
}

// Close stops listening. Datagrams that wait are lost.
func (p *packets) Close() error {
	p.host.net.mu.Lock()
	defer p.host.net.mu.Unlock()
	p.closeLocked()
	return nil
}

func (p *packets) closeLocked() {
	if n := p.host.net; !isClosed(p.closed) {
		close(p.closed)
		delete(n.packets, string(p.address))
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// LocalAddr returns the address that is listened on.
func (p *packets) LocalAddr() net.Addr { return p.address }
