package netmesh

import (
	"net"

	"github.com/bmqelect/bmqelect/internal/base/rawio"
)

// tcpConn is a TCP connection on which heartbeats cost less: see package rawio.
type tcpConn struct {
	*net.TCPConn
	in, out *rawio.Port
}

// cheap returns conn with cheaper reads and writes.
func cheap(conn net.Conn) net.Conn {
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return conn
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return conn // it is closed, as whoever uses it will find
	}
	return &tcpConn{tcp, rawio.Reader(raw), rawio.Writer(raw)}
}

func (c *tcpConn) Read(b []byte) (int, error)  { return c.in.Read(b) }
func (c *tcpConn) Write(b []byte) (int, error) { return c.out.Write(b) }

// ordinary undoes cheap.
func ordinary(conn net.Conn) net.Conn {
	if c, ok := conn.(*tcpConn); ok {
		return c.TCPConn
	}
	return conn
}
