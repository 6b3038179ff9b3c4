// Package loopback tells which addresses other machines cannot reach.
package loopback

import (
	"net"
	"net/netip"
)

// Is reports whether hostport, host:port, is an address of loopback: an IP address of it, or
// localhost. Another name is none: nobody knows to what it will resolve.
func Is(hostport string) bool {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

// Joins reports whether both ends of a connection are on this machine's loopback.
func Joins(conn net.Conn) bool {
	return on(conn.LocalAddr()) && on(conn.RemoteAddr())
}

func on(addr net.Addr) bool {
	tcp, ok := addr.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}
