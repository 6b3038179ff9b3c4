package gossip

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"syscall"
	"time"
)

// resolveTimeout bounds one look-up of a name.
const resolveTimeout = 3 * time.Second

// resolve returns the addresses that hostport stands for now. An IP address
// stands for itself: the resolver would drop its zone.
func resolve(ctx context.Context, hostport string) ([]netip.AddrPort, error) {
	if addr, err := netip.ParseAddrPort(hostport); err == nil {
		return []netip.AddrPort{netip.AddrPortFrom(addr.Addr().Unmap(), addr.Port())}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, resolveTimeout)
	defer cancel()
	host, port, err := net.SplitHostPort(hostport)
	if err != nil {
		return nil, fmt.Errorf("resolve %q: %w", hostport, err)
	}
	number, err := net.DefaultResolver.LookupPort(ctx, "tcp", port)
	if err != nil {
		return nil, fmt.Errorf("resolve port of %q: %w", hostport, err)
	}
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, fmt.Errorf("resolve host of %q: %w", hostport, err)
	}
	addrs := make([]netip.AddrPort, len(ips))
	for i, ip := range ips {
		addrs[i] = netip.AddrPortFrom(ip.Unmap(), uint16(number))
	}
	return addrs, nil
}

// resolveOne returns the address that a setting stands for, IPv4 first.
func (g *Gossip) resolveOne(field, hostport string) (netip.AddrPort, error) {
	addrs, err := g.cfg.resolve(context.Background(), hostport)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("%s: %w", field, err)
	}
	addr := addrs[0]
	if i := slices.IndexFunc(addrs, func(a netip.AddrPort) bool { return a.Addr().Is4() }); i >= 0 {
		addr = addrs[i]
	}
	if addr.Addr().Zone() != "" {
		return addr, fmt.Errorf("%s %q has a zone, which gossip cannot pass on: use an address without one", field, hostport)
	}
	return addr, nil
}

// advertised returns what to tell the others, given what was bound.
func (g *Gossip) advertised(bound netip.AddrPort) (netip.AddrPort, error) {
	setting := g.cfg.Advertise
	if setting == "" {
		if bound.Addr().IsUnspecified() && bound.Addr().Is6() {
			return netip.AddrPort{}, fmt.Errorf("bind address %s is none that others can reach: advertise another", bound)
		}
		return bound, nil
	}
	addr, err := g.resolveOne("Advertise", setting)
	if err != nil {
		return netip.AddrPort{}, err
	}
	if addr.Addr().IsUnspecified() {
		return netip.AddrPort{}, fmt.Errorf("advertised address %q is none that others can reach: name one interface", setting)
	}
	if addr.Port() == 0 {
		addr = netip.AddrPortFrom(addr.Addr(), bound.Port())
	}
	return addr, nil
}

// explainBind adds to a failed bind what a person can do about it. memberlist
// hides the cause, so the bind is tried once more to see it.
func explainBind(bind netip.AddrPort, failure error) error {
	ln, err := net.Listen("tcp", bind.String())
	if err == nil {
		err = ln.Close()
	}
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("bind %s: another process listens there already; stop it or choose another port: %w", bind, err)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("bind %s: no interface of this machine has that address: %w", bind, err)
	}
	return fmt.Errorf("bind %s for TCP and UDP: %w", bind, failure)
}

// localAddrs returns the addresses of this machine's interfaces.
func localAddrs() map[netip.Addr]bool {
	local := map[netip.Addr]bool{}
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return local
	}
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			local[p.Addr().Unmap()] = true
		}
	}
	return local
}
