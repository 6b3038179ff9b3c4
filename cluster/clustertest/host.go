package clustertest

import (
	"context"
	"net"

	"github.com/bmqelect/bmqelect/internal/base/memnet"
	"github.com/bmqelect/bmqelect/netmesh"
)

// host is a node's way to the network. While its gate is shut, no call of it
// returns, and nothing is sent; the other ends see open connections.
type host struct {
	*memnet.Host
	gate *gate
}

var _ netmesh.Network = host{}

func (h host) Listen(address string) (net.Listener, error) {
	l, err := h.Host.Listen(address)
	if err != nil {
		return nil, err
	}
	return listener{l, h.gate}, nil
}

func (h host) Dial(ctx context.Context, address string) (net.Conn, error) {
	h.gate.pass()
	c, err := h.Host.Dial(ctx, address)
	h.gate.pass()
	return behind(h.gate, c, err)
}

type listener struct {
	net.Listener
	gate *gate
}

func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	l.gate.pass()
	return behind(l.gate, c, err)
}

// conn is a connection of a host.
type conn struct {
	*memnet.Conn
	gate *gate
}

// behind puts what the network returned behind the gate.
func behind(g *gate, c net.Conn, err error) (net.Conn, error) {
	if err != nil {
		return nil, err
	}
	return conn{c.(*memnet.Conn), g}, nil
}

func (c conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.gate.isShut() {
		// What comes in now nobody has read: a crash must reset the connection.
		_ = c.SetLinger(0) // cannot fail
		c.gate.pass()
		_ = c.SetLinger(-1)
	}
	return n, err
}

func (c conn) Write(b []byte) (int, error) {
	c.gate.pass()
	n, err := c.Conn.Write(b)
	c.gate.pass()
	return n, err
}

func (c conn) CloseWrite() error {
	c.gate.pass()
	return c.Conn.CloseWrite()
}

func (c conn) Close() error {
	c.gate.pass()
	return c.Conn.Close()
}
