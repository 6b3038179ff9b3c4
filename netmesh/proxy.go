package netmesh

import (
	"fmt"
	"net"
	"net/netip"
)

// proxyBetween says what shows that something between the two ends makes
// connections of its own or rewrites addresses; "" if nothing does, or if no
// conclusion is drawn from how connections end anyway.
func (l *link) proxyBetween(mine, theirs *facts) string {
	plain := sameEnd(mine.Local, theirs.Remote) && sameEnd(mine.Remote, theirs.Local)
	l.direct.Store(plain)
	l.proxied.Store(!plain)
	if plain || l.m.cfg.NoDeathProof {
		return ""
	}
	return fmt.Sprintf("node %q has one end of the connection at %s and sees the other at %s; node %q has it at %s and sees the other at %s",
		l.m.cfg.Node, mine.Local, mine.Remote, l.p.node, printable(theirs.Local), printable(theirs.Remote))
}

// setEnds tells the ends of a connection as this side sees them.
func (h *hello) setEnds(conn net.Conn) {
	h.Local, h.Remote = clip(conn.LocalAddr().String()), clip(conn.RemoteAddr().String())
}

// rewritten refuses an evidence connection whose ends the peer, which sent h, sees
// otherwise: it could have another path than its link.
func (h *hello) rewritten(conn net.Conn) *refusal {
	mine := &hello{}
	mine.setEnds(conn)
	if sameEnd(mine.Local, h.Remote) && sameEnd(mine.Remote, h.Local) {
		return nil
	}
	return refuse(ReasonProxied, "this node has one end of the evidence connection at %s and sees the other at %s; node %q has it at %s and sees the other at %s",
		mine.Local, mine.Remote, h.Node, printable(clip(h.Local)), printable(clip(h.Remote)))
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
