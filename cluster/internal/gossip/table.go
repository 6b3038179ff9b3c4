package gossip

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"github.com/bmqelect/bmqelect/elector"
)

const (
	// maxGone bounds how many members that left or died are remembered.
	maxGone = 128
	// maxOthers bounds how many members without a vote are let in: each is dialed, and
	// anybody who reaches the port can invent them.
	maxOthers = 256
)

// table is this package's own copy of the members. memberlist hands out pointers
// that it goes on writing to, forgets the dead, and does not say who left.
type table struct {
	mu      sync.RWMutex
	members map[elector.NodeID]Member
	byAddr  map[string]elector.NodeID
	gone    []elector.NodeID // left or dead, oldest first
	// moved holds addresses at which another process with a member's name was
	// seen, while the member still counted as alive elsewhere.
	moved map[elector.NodeID]string
}

func newTable() *table {
	return &table{
		members: map[elector.NodeID]Member{},
		byAddr:  map[string]elector.NodeID{},
		moved:   map[elector.NodeID]string{},
	}
}

// put replaces what is known of a member.
func (t *table) put(m Member) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.forget(m.Node)
	t.members[m.Node] = m
	t.byAddr[m.GossipAddr] = m.Node
	if t.moved[m.Node] == m.GossipAddr {
		delete(t.moved, m.Node)
	}
	if m.State != StateAlive {
		t.gone = append(t.gone, m.Node)
		if len(t.gone) > maxGone {
			delete(t.moved, t.gone[0])
			t.forget(t.gone[0])
		}
	}
}

// forget removes a member; the caller holds mu.
func (t *table) forget(node elector.NodeID) {
	old, ok := t.members[node]
	if !ok {
		return
	}
	delete(t.members, node)
	if t.byAddr[old.GossipAddr] == node {
		delete(t.byAddr, old.GossipAddr)
	}
	t.gone = slices.DeleteFunc(t.gone, func(n elector.NodeID) bool { return n == node })
}

// list returns all members in the order of their names.
func (t *table) list() []Member {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return slices.SortedFunc(maps.Values(t.members), func(a, b Member) int {
		return cmp.Compare(a.Node, b.Node)
	})
}

// admits reports whether there is room for node among the members that are alive: always
// for a voter, and for who is alive already.
func (t *table) admits(node elector.NodeID, voters []elector.NodeID) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if t.members[node].State == StateAlive || slices.Contains(voters, node) {
		return true
	}
	others := 0
	for _, m := range t.members {
		if m.State == StateAlive && !slices.Contains(voters, m.Node) {
			others++
		}
	}
	return others < maxOthers
}

// nodeAt returns the name of the member at a gossip address, or "".
func (t *table) nodeAt(addr string) elector.NodeID {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.byAddr[addr]
}

// sawAt remembers that a process with the member's name answers at addr.
func (t *table) sawAt(node elector.NodeID, addr string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, known := t.members[node]; known {
		t.moved[node] = addr
	}
}

// notAt takes sawAt back.
func (t *table) notAt(addr string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.moved, func(_ elector.NodeID, a string) bool { return a == addr })
}

// lost returns the addresses where members may be found that are not alive now.
func (t *table) lost() []string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	addrs := slices.Collect(maps.Values(t.moved))
	for _, node := range t.gone {
		addrs = append(addrs, t.members[node].GossipAddr)
	}
	return addrs
}

// aliveAt returns the addresses of the members that are alive.
func (t *table) aliveAt() map[string]bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	alive := map[string]bool{}
	for _, m := range t.members {
		if m.State == StateAlive {
			alive[m.GossipAddr] = true
		}
	}
	return alive
}
