// Package memnet is a network in memory, for tests of whole clusters in the
// virtual time of testing/synctest. It tells apart what a kernel's TCP tells
// apart: an orderly end (io.EOF), a reset (syscall.ECONNRESET), a refused dial
// (syscall.ECONNREFUSED) and a deadline (os.ErrDeadlineExceeded). As in a kernel
// a reset is told once: if a write takes it, a later read returns io.EOF.
//
// Data arrives at once, unless Delay says otherwise, and in order. Buffers are
// bounded: a writer whose reader does not read blocks. Filter puts a firewall
// between two hosts, Stop stops a process. Datagrams may be lost and overtake each
// other. Everything is safe for concurrent use. There are no goroutines inside.
package memnet

import (
	"cmp"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// Network is a set of hosts that reach each other by name.
type Network struct {
	mu        sync.Mutex           // guards everything in this package
	listeners map[string]*listener // by host:port
	packets   map[string]*packets  // sockets for datagrams, by host:port
	conns     map[*Conn]struct{}   // open ends
	hosts     map[string]*Host     // the process that runs on each host
	port      int                  // the last one picked
	rules     map[[2]string]Rule   // for packets from one host to another
	lost      []packet             // dropped, to be sent again

	latency func(from, to string) time.Duration
	lose    func(from, to string) bool // datagrams; nil for none
	late    time.Duration              // by how much they are later than all else
	lag     func() time.Duration
	perByte time.Duration // that a byte takes to leave
}

// New returns an empty network.
func New() *Network {
	return &Network{
		listeners: make(map[string]*listener), packets: make(map[string]*packets),
		conns: make(map[*Conn]struct{}),
		hosts: make(map[string]*Host), port: 49151, rules: make(map[[2]string]Rule),
	}
}

// Host returns the process that runs on the host of that name; a new one if
// there is none or the last one was killed.
func (n *Network) Host(name string) *Host {
	n.mu.Lock()
	defer n.mu.Unlock()
	h := n.hosts[name]
	if h == nil {
		h = &Host{net: n, name: name}
		n.hosts[name] = h
	}
	return h
}

// Kill ends the process on a host, as SIGKILL does: its listeners are closed, and every
// connection ends as by Conn.Close. Later calls through its old Host fail with
// net.ErrClosed.
func (n *Network) Kill(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	h := n.hosts[name]
	if h == nil {
		return
	}
	delete(n.hosts, name)
	h.dead = true
	h.resume()
	for _, l := range n.listeners {
		if l.host == h {
			l.closeLocked()
		}
	}
	for _, p := range n.packets {
		if p.host == h {
			p.closeLocked()
		}
	}
	for _, c := range n.ends(func(c *Conn) bool { return c.host == h }) {
		c.closeLocked(c.linger)
	}
}

// addr is host:port.
type addr string

func (a addr) Network() string { return "mem" }
func (a addr) String() string  { return string(a) }

// pick returns address with a port where it has 0. Called with mu held.
func (n *Network) pick(address string) (string, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", fmt.Errorf("memnet: address %q is not host:port: %w", address, err)
	}
	if port == "0" {
		n.port++
		port = strconv.Itoa(n.port)
	}
	return net.JoinHostPort(host, port), nil
}

func opError(op, address string, err error) error {
	return &net.OpError{Op: op, Net: "mem", Addr: addr(address), Err: err}
}

var errRefused = os.NewSyscallError("connect", syscall.ECONNREFUSED)

// Reset lets a reset arrive at host to on every connection with host from, as if from had
// sent it. The other ends learn of it when they send.
func (n *Network) Reset(from, to string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	between := func(c *Conn) bool { return c.host.name == to && c.peer.host.name == from }
	for _, c := range n.ends(between) {
		c.reset()
	}
}

// ends returns the open ends for which want returns true, in the same order in every run.
// The caller holds mu.
func (n *Network) ends(want func(*Conn) bool) (all []*Conn) {
	for c := range n.conns {
		if want(c) {
			all = append(all, c)
		}
	}
	slices.SortFunc(all, func(a, b *Conn) int {
		return cmp.Or(cmp.Compare(a.local, b.local), cmp.Compare(a.remote, b.remote))
	})
	return all
}
