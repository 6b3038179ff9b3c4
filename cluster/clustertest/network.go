package clustertest

import (
	"fmt"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/netmesh/fault"
)

// Cut drops everything between a and b from now on, in both directions. Their connection
// stays until one of them closes it.
func (c *Cluster) Cut(a, b cluster.NodeID) {
	c.t.Helper()
	if a == b {
		c.t.Fatalf("clustertest: cut %s-%s: a node is not cut off from itself", a, b)
	}
	c.cut(c.member(a), c.member(b))
	c.story.add("%s-%s is cut", a, b)
}

// cut sets the faults of both ends, so that a dial to a dead node behind a cut is not
// refused.
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

// Partition cuts the nodes of each group off from those of the others. All nodes that are in
// no group form one more. Earlier cuts stay: call Heal first for another partition.
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

// Heal ends every fault of the network, including those set by Faults. Nodes that
// lost their connection dial again within seconds of virtual time.
func (c *Cluster) Heal() {
	for _, m := range c.members {
		m.faults.HealAll()
	}
	c.story.add("the network is healed")
}

// Faults returns the fault layer of a node, for delay, loss and cuts of one direction. All
// starts of the node use it. Of its faults, Leader considers only links that are cut in both
// directions. Code that simulates connections of the application may ask it, from any
// goroutine, whether they are cut (Blocks).
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
