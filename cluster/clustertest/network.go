package clustertest

import (
	"fmt"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/netmesh/fault"
)

// Cut loses everything between a and b from now on, both ways. Their connection
// stays until they give it up.
func (c *Cluster) Cut(a, b cluster.NodeID) {
	c.t.Helper()
	if a == b {
		c.t.Fatalf("clustertest: cut %s-%s: a node is not cut off from itself", a, b)
	}
	c.cut(c.member(a), c.member(b))
	c.story.add("%s-%s is cut", a, b)
}

// cut sets both ends' faults: a node that dials a dead one beyond a cut must not
// be refused.
func (c *Cluster) cut(a, b *member) {
	a.faults.Cut(b.id, fault.Both)
	b.faults.Cut(a.id, fault.Both)
}

// Isolate cuts a node off from all others.
func (c *Cluster) Isolate(id cluster.NodeID) {
	c.t.Helper()
	m := c.member(id)
	for _, other := range c.members {
		if other != m {
			c.cut(m, other)
		}
	}
	c.story.add("%s is isolated", id)
}

// Partition cuts the nodes of each group off from those of the others; the nodes
// that are in none are one more group. What was cut before stays cut: Heal first
// for another partition.
func (c *Cluster) Partition(groups ...[]cluster.NodeID) {
	c.t.Helper()
	side := map[cluster.NodeID]int{}
	for i, group := range groups {
		for _, id := range group {
			if side[c.member(id).id] != 0 {
				c.t.Fatalf("clustertest: partition %v: node %s is named twice", groups, id)
			}
			side[id] = i + 1
		}
	}
	for _, a := range c.ids {
		for _, b := range c.ids {
			if side[a] != side[b] {
				c.cut(c.members[a], c.members[b])
			}
		}
	}
	c.story.add("partition %v from each other and the rest", groups)
}

// Heal ends every fault of the network, also what was set by Faults. Nodes that
// lost their connection dial again within seconds of virtual time.
func (c *Cluster) Heal() {
	for _, m := range c.members {
		m.faults.HealAll()
	}
	c.story.add("the network is healed")
}

// Faults returns what is wrong with the network as one node sees it, for delay,
// loss and cuts of one direction. It serves all starts of the node. Leader takes
// notice of a link that is cut both ways, and of nothing else in it. What stands for
// the application's own connections may ask it, from any goroutine, which of them
// are cut (Blocks).
func (c *Cluster) Faults(id cluster.NodeID) *fault.Faults {
	c.t.Helper()
	return c.member(id).faults
}

// apart reports whether nothing passes between two nodes.
func apart(a, b *member) bool { return a.faults.Blocks(b.id) || b.faults.Blocks(a.id) }

// cuts lists the links that are cut, sorted as the nodes were given.
func (c *Cluster) cuts() (list []string) {
	for i, a := range c.ids {
		for _, b := range c.ids[i+1:] {
			if apart(c.members[a], c.members[b]) {
				list = append(list, fmt.Sprintf("%s-%s", a, b))
			}
		}
	}
	return list
}
