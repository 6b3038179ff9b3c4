package netmesh

import (
	"context"
	"net"
	"time"
)

// tcpNetwork is TCP. Pings notice a dead peer; the kernel's probes are for connections
// that are not links.
type tcpNetwork struct{}

var keepAlive = net.KeepAliveConfig{
	Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3,
}

// Listen listens on addr.
func (tcpNetwork) Listen(addr string) (net.Listener, error) {
	lc := net.ListenConfig{KeepAliveConfig: keepAlive}
	lc.SetMultipathTCP(false) // the kernel of a dead process closes plain TCP sooner
	return lc.Listen(context.Background(), "tcp", addr)
}

// Dial connects to addr.
func (tcpNetwork) Dial(ctx context.Context, addr string) (net.Conn, error) {
	d := net.Dialer{KeepAliveConfig: keepAlive}
	return d.DialContext(ctx, "tcp", addr)
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
