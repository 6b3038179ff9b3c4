package limit

import (
	"net"
	"net/netip"
)

// IsLoopback reports whether hostport, host:port, is an address that other machines cannot reach:
// an IP address of loopback, or localhost. Any other name does not count: it may resolve to any
// address.
func IsLoopback(hostport string) bool {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

// OnLoopback reports whether both ends of a connection are on this machine's loopback.
func OnLoopback(conn net.Conn) bool {
	return on(conn.LocalAddr()) && on(conn.RemoteAddr())
}

func on(addr net.Addr) bool {
	tcp, ok := addr.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}
