package netmesh

import (
	"context"
	"net"
	"time"

	"github.com/bmqelect/bmqelect/internal/base/rawcall"
)

// tcpNetwork is TCP. Pings notice a dead peer; the kernel's probes are for connections
// that are not links.
type tcpNetwork struct{}

var keepAlive = net.KeepAliveConfig{
	Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3,
}

// listener accepts connections that a process at rest can use at little cost.
type listener struct{ *net.TCPListener }

func (l listener) Accept() (net.Conn, error) {
	c, err := l.TCPListener.Accept()
	if err != nil {
		return nil, err
	}
	return rawcall.Conn(c), nil
}

// Listen listens on addr.
func (tcpNetwork) Listen(addr string) (net.Listener, error) {
	lc := net.ListenConfig{KeepAliveConfig: keepAlive}
	lc.SetMultipathTCP(false) // the kernel of a dead process closes plain TCP sooner
	l, err := lc.Listen(context.Background(), "tcp", addr)
	if err != nil {
		return nil, err
	}
	return listener{l.(*net.TCPListener)}, nil
}

// Dial connects to addr.
func (tcpNetwork) Dial(ctx context.Context, addr string) (net.Conn, error) {
	d := net.Dialer{KeepAliveConfig: keepAlive}
	c, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return rawcall.Conn(c), nil
}

// reset closes conn so that the peer sees a reset and no orderly end, if it is resettable.
func reset(conn net.Conn) {
	if resettable(conn) {
		_ = conn.(lingering).SetLinger(0) // fails on a closed connection only
	}
	_ = conn.Close()
}

type lingering interface{ SetLinger(sec int) error }

func resettable(conn net.Conn) bool {
	_, ok := conn.(lingering)
	return ok
}

// closeWrite sends the end of stream and keeps the other direction open.
func closeWrite(conn net.Conn) error {
	if c, ok := conn.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return nil
}
