package memnet

import (
	"cmp"
	"slices"
)

// Reset lets resets arrive at one host, as if another one had sent them: on
// every connection between the two. The other ends learn of it when they send.
func (n *Network) Reset(from, to string) {
	n.mu.Lock()
	ends := n.ends(func(c *Conn) bool { return c.host.name == to && c.peer.host.name == from })
	n.mu.Unlock()
	for _, c := range ends {
		c.reset()
	}
}

// ends are the open ends for which want returns true, in the same order in every
// run. Called with mu held.
func (n *Network) ends(want func(*Conn) bool) (all []*Conn) {
	for c := range n.conns {
		if want(c) {
			all = append(all, c)
		}
	}
	slices.SortFunc(all, func(a, b *Conn) int {
		return cmp.Or(cmp.Compare(a.local, b.local), cmp.Compare(a.remote, b.remote))
	})
	return all
}
