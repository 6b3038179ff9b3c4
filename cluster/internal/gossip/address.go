package gossip

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// resolveTimeout bounds one look-up of a name.
const resolveTimeout = 3 * time.Second

// resolve returns the current addresses of hostport. An IP address is not given to the
// resolver, which would drop its zone.
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
	number, err := strconv.ParseUint(port, 10, 16)
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

// resolveOne returns one address of a setting, IPv4 if there is one.
func (g *Gossip) resolveOne(field, hostport string) (addr netip.AddrPort, err error) {
	addrs, err := g.cfg.resolve(context.Background(), hostport)
	if err != nil {
		return addr, fmt.Errorf("%s: %w", field, err)
	}
	isIPv4 := func(a netip.AddrPort) bool { return a.Addr().Is4() }
	addr = addrs[max(0, slices.IndexFunc(addrs, isIPv4))]
	if addr.Addr().Zone() != "" {
		err = fmt.Errorf("%s %q has a zone, which gossip cannot pass on: use an address without one",
			field, hostport)
	}
	return addr, err
}

// advertised returns the address to tell the others, given the bound one.
func (g *Gossip) advertised(bound netip.AddrPort) (addr netip.AddrPort, err error) {
	if g.cfg.Advertise == "" {
		if bound.Addr().IsUnspecified() && bound.Addr().Is6() {
			err = fmt.Errorf("others cannot reach bind address %s: advertise another", bound)
		}
		return bound, err
	}
	addr, err = g.resolveOne("Advertise", g.cfg.Advertise)
	if err == nil && addr.Addr().IsUnspecified() {
		err = fmt.Errorf("others cannot reach advertised address %q: name one interface", addr)
	}
	if addr.Port() == 0 {
		addr = netip.AddrPortFrom(addr.Addr(), bound.Port())
	}
	return addr, err
}

// explainBind adds advice to a failed bind. memberlist hides the cause, so explainBind
// binds again to see it.
func explainBind(bind netip.AddrPort, failure error) error {
	ln, err := net.Listen("tcp", bind.String())
	if err == nil {
		err = ln.Close()
	}
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("bind %s: another process listens there already; "+
			"stop it or choose another port: %w", bind, err)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("bind %s: no interface of this machine has that address: %w", bind, err)
	}
	return fmt.Errorf("bind %s for TCP and UDP: %w", bind, failure)
}

// isSelf reports whether an address reaches this very process.
func (j *joiner) isSelf(addr netip.AddrPort) bool {
	if addr == j.g.addr || addr == j.g.bound {
		return true
	}
	if !j.g.bound.Addr().IsUnspecified() || addr.Port() != j.g.bound.Port() {
		return false
	}
	locals, _ := net.InterfaceAddrs() // without them this node is tried like any other
	return slices.ContainsFunc(locals, func(a net.Addr) bool {
		p, err := netip.ParsePrefix(a.String())
		return err == nil && p.Addr().Unmap() == addr.Addr()
	})
}
