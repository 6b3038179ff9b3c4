package netmesh

import (
	"fmt"
	"net/netip"
)

// proxyBetween says what shows that something between the two ends makes
// connections of its own or rewrites addresses; "" if nothing does, or if no
// conclusion is drawn from how connections end anyway.
func (l *link) proxyBetween(mine, theirs *facts) string {
	plain := sameEnd(mine.Local, theirs.Remote) && sameEnd(mine.Remote, theirs.Local)
	l.proxied.Store(!plain)
	if plain || l.m.cfg.NoDeathProof {
		return ""
	}
	return fmt.Sprintf("node %q has one end of the connection at %s and sees the other at %s; node %q has it at %s and sees the other at %s",
		l.m.cfg.Node, mine.Local, mine.Remote, l.p.node, printable(theirs.Local), printable(theirs.Remote))
}

// sameEnd reports whether two kernels' names of one end of a connection agree.
// What is no IP address, of a Network that is not TCP, is not judged.
func sameEnd(a, b string) bool {
	x, errX := netip.ParseAddrPort(a)
	y, errY := netip.ParseAddrPort(b)
	return errX != nil || errY != nil || plainEnd(x) == plainEnd(y)
}

// plainEnd is without what differs from host to host: the zone, and whether a
// socket for both IPv6 and IPv4 is used.
func plainEnd(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap().WithZone(""), a.Port())
}
