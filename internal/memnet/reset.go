package memnet

import (
	"cmp"
	"slices"
)

// Reset lets resets arrive at one host, as if another one had sent them: on
// every connection between the two. The other ends learn of it when they send.
func (n *Network) Reset(from, to string) {
	n.mu.Lock()
	var ends []*Conn
	for c := range n.conns {
		if c.host.name == to && c.peer.host.name == from {
			ends = append(ends, c)
		}
	}
	n.mu.Unlock()
	slices.SortFunc(ends, func(a, b *Conn) int { return cmp.Compare(a.local, b.local) })
	for _, c := range ends {
		c.reset()
	}
}
