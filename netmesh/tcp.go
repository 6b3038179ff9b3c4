package netmesh

import (
	"context"
	"net"
	"syscall"
	"time"
)

// tcpNetwork is TCP, set up so that a dead peer is noticed soon.
type tcpNetwork struct {
	userTimeout time.Duration
}

func (t tcpNetwork) keepAlive() net.KeepAliveConfig {
	// Pings notice a dead peer sooner; the kernel's probes are for connections
	// that are not links yet.
	return net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3}
}

func (t tcpNetwork) control(_, _ string, raw syscall.RawConn) error {
	return setUserTimeout(raw, t.userTimeout)
}

// Listen listens on addr. Accepted connections inherit the options, TCP_NODELAY
// is Go's default.
func (t tcpNetwork) Listen(addr string) (net.Listener, error) {
	lc := net.ListenConfig{Control: t.control, KeepAliveConfig: t.keepAlive()}
	return lc.Listen(context.Background(), "tcp", addr)
}

// Dial connects to addr.
func (t tcpNetwork) Dial(ctx context.Context, addr string) (net.Conn, error) {
	d := net.Dialer{Control: t.control, KeepAliveConfig: t.keepAlive()}
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
