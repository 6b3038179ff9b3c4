package netmesh

import (
	"context"
	"net"
	"sync/atomic"
)

// through is a network that wraps the connections of another one.
type through struct {
	Network
	wrap         func(net.Conn) net.Conn
	dialed, made atomic.Int64 // attempts, and connections either way
}

// wrapped returns a network that wraps the connections of a node.
func wrapped(wrap func(net.Conn) net.Conn) (n *through, edit func(*Config)) {
	n = &through{Network: tcpNetwork{}, wrap: wrap}
	return n, func(c *Config) {
		if c.Network != nil {
			n.Network = c.Network
		}
		c.Network = n
	}
}

func (n *through) Dial(ctx context.Context, addr string) (net.Conn, error) {
	n.dialed.Add(1)
	c, err := n.Network.Dial(ctx, addr)
	return n.wrapOf(c, err)
}

func (n *through) Listen(addr string) (net.Listener, error) {
	l, err := n.Network.Listen(addr)
	return throughListener{l, n}, err
}

func (n *through) wrapOf(c net.Conn, err error) (net.Conn, error) {
	if err != nil {
		return nil, err
	}
	n.made.Add(1)
	return n.wrap(c), nil
}

type throughListener struct {
	net.Listener
	n *through
}

func (l throughListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return l.n.wrapOf(c, err)
}

// tapped is a TCP connection on which a test reads along.
type tapped struct {
	ofTCP
	read    func(b []byte, err error) // what was read; nil for nobody
	written func(b []byte)            // what was written; nil for nobody
}

type ofTCP interface {
	net.Conn
	lingering
	CloseWrite() error
}

func (c *tapped) Read(b []byte) (int, error) {
	n, err := c.ofTCP.Read(b)
	if c.read != nil {
		c.read(b[:n], err)
	}
	return n, err
}

func (c *tapped) Write(b []byte) (int, error) {
	n, err := c.ofTCP.Write(b)
	if c.written != nil {
		c.written(b)
	}
	return n, err
}
