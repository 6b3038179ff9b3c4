package netmesh

import (
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/bmqelect/bmqelect/internal/base/words"
)

// Facts is what a process tells about itself once a link is up. A newer version may append
// fields. Older builds append two addresses, so the next field must be the third.
type Facts struct {
	Voters     []string // sorted; the first of them if not all fit; at most 255 bytes each
	VoterCount uint     // of all voters
	VoterSum   []byte   // fingerprint of all voters
	Settings   []string // key, value, key, value; at most 16 pairs, 255 bytes each
}

const (
	maxSettings = 16  // of Facts
	maxAddress  = 200 // bytes of an address that travels
)

// check reports what no correct peer tells.
func (f *Facts) check() error {
	long := func(s string) bool { return len(s) > MaxNameLength }
	switch {
	case uint(len(f.Voters)) > f.VoterCount || slices.ContainsFunc(f.Voters, long) ||
		!slices.IsSorted(f.Voters):
		return fmt.Errorf("%d voters of %d, unsorted or a name above %d bytes",
			len(f.Voters), f.VoterCount, MaxNameLength)
	case len(f.Settings)%2 != 0 || len(f.Settings) > 2*maxSettings ||
		slices.ContainsFunc(f.Settings, long):
		return fmt.Errorf("%d words of settings; want at most %d pairs, of at most %d bytes",
			len(f.Settings), maxSettings, MaxNameLength)
	}
	return nil
}

// isVoter reports whether a node is a voter, or may be one because not all voters are listed.
func (f *Facts) isVoter(node string) bool {
	return uint(len(f.Voters)) < f.VoterCount || f.VoterCount == 0 || slices.Contains(f.Voters, node)
}

// learn hands what the peer tells to the observer, and then makes the evidence connection.
func (l *link) learn(theirs *Facts) error {
	if err := theirs.check(); err != nil {
		return refuse(ReasonGarbage, "facts: %v", err)
	}
	l.p.callbacks.lock()
	defer l.p.callbacks.unlock()
	if !l.current() {
		return nil
	}
	if l.m.observer != nil {
		l.m.observer.Told(l.p.node, *theirs)
	}
	if l.dialed && !l.evidenceWanted && l.info.Version >= version3 &&
		!l.m.cfg.DeathProof.Off && l.resettable {
		l.evidenceWanted = true
		l.m.others.Go(l.keepEvidence)
	}
	return nil
}

// endsOf names the ends of a connection as this side sees them.
func endsOf(conn net.Conn) (local, remote string) {
	return clip(conn.LocalAddr().String()), clip(conn.RemoteAddr().String())
}

func clip(s string) string { return s[:min(len(s), maxAddress)] }

// rewritten refuses an evidence connection if the peer, which sent h, sees other addresses at its
// ends than this node: a proxy or NAT is between, so its path may differ from that of the link.
func (h *hello) rewritten(conn net.Conn) *refusal {
	local, remote := endsOf(conn)
	if sameEnd(local, h.Remote) && sameEnd(remote, h.Local) {
		return nil
	}
	return refuse(ReasonProxied, "this node has one end of the evidence connection at %s and "+
		"sees the other at %s; node %q has it at %s and sees the other at %s",
		local, remote, h.Node, words.Printable(h.Local, maxAddress),
		words.Printable(h.Remote, maxAddress))
}

// sameEnd reports whether two kernels' names of one end of a connection agree, without
// what differs from host to host: the zone, and whether a socket is for both IPv6 and IPv4.
// What is no IP address, of a Network that is not TCP, is not judged.
func sameEnd(a, b string) bool {
	plain := func(a netip.AddrPort) netip.AddrPort {
		return netip.AddrPortFrom(a.Addr().Unmap().WithZone(""), a.Port())
	}
	x, errX := netip.ParseAddrPort(a)
	y, errY := netip.ParseAddrPort(b)
	return errX != nil || errY != nil || plain(x) == plain(y)
}
