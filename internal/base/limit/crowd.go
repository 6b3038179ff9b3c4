// Package limit bounds what strangers, files and repeated faults can cost a process: connections,
// bytes, waiting and lines of a log. Its functions may be called from any goroutine.
package limit

import (
	"net"
	"net/netip"
	"slices"
	"sync"
)

// Crowd has room for a number of guests. When it is full, the next one takes the place of
// another: of the source with the most guests, the one that came first. An honest guest
// that is soon done keeps its place until as many come after it. NewCrowd makes one; its
// methods may be called from any goroutine.
type Crowd[Guest comparable] struct {
	room int

	mu     sync.Mutex
	guests []guest[Guest] // in the order in which they came
}

type guest[Guest comparable] struct {
	it     Guest
	source string
}

// NewCrowd returns a Crowd with that room, at least 1.
func NewCrowd[Guest comparable](room int) *Crowd[Guest] { return &Crowd[Guest]{room: room} }

// Enter lets a guest in that comes from host:port. If the crowd was full, out is the one
// that has lost its place, which the caller has to end; it never is the newcomer.
func (c *Crowd[Guest]) Enter(it Guest, from string) (out Guest, full bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if full = len(c.guests) >= c.room; full {
		i := c.victim()
		out = c.guests[i].it
		c.guests = slices.Delete(c.guests, i, i+1)
	}
	c.guests = append(c.guests, guest[Guest]{it, sourceOf(from)})
	return out, full
}

// victim is the first guest of the source with the most guests. Called with mu held.
func (c *Crowd[Guest]) victim() (first int) {
	count := map[string]int{}
	for _, g := range c.guests {
		count[g.source]++
	}
	for i, g := range c.guests {
		if count[g.source] > count[c.guests[first].source] {
			first = i
		}
	}
	return first
}

// OwnPlace reports whether a guest from host:port would take the place of another guest from the
// same source.
func (c *Crowd[Guest]) OwnPlace(from string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.guests) >= c.room && c.guests[c.victim()].source == sourceOf(from)
}

// Leave gives up a guest's place; it does nothing if the guest has lost it.
func (c *Crowd[Guest]) Leave(it Guest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.guests = slices.DeleteFunc(c.guests, func(g guest[Guest]) bool { return g.it == it })
}

// All returns the guests in the order in which they came.
func (c *Crowd[Guest]) All() []Guest {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]Guest, len(c.guests))
	for i, g := range c.guests {
		all[i] = g.it
	}
	return all
}

// sourceOf is what counts as one source: a host, or the /64 network of an IPv6 address, of
// which one machine has all addresses.
func sourceOf(addr string) string {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return addr // a Unix socket
	}
	ip, err := netip.ParseAddr(host)
	switch ip = ip.Unmap(); {
	case err != nil:
		return host
	case ip.Is4():
		return ip.String()
	}
	network, _ := ip.Prefix(64) // fails for IPv4 with fewer bits alone
	return network.String()
}
