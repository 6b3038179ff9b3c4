package shards

import (
	"cmp"
	"slices"
	"time"

	"github.com/bmqelect/bmqelect/cluster"
)

// handing is how many shards go to a node.
type handing struct {
	to    cluster.NodeID
	count int
}

// surplus says how many shards a node hands over, and to whom, so that in the end the loads of all
// differ by one at most. It moves the fewest shards that this takes. All nodes that see the same
// loads compute parts of the same plan, so they do not give too much together.
func surplus(loads map[cluster.NodeID]int, self cluster.NodeID) (hand []handing) {
	type node struct {
		id   cluster.NodeID
		over int // what it has above its share
	}
	var all []node
	total := 0
	for id, load := range loads {
		all = append(all, node{id, load})
		total += load
	}
	slices.SortFunc(all, func(a, b node) int {
		return cmp.Or(cmp.Compare(b.over, a.over), cmp.Compare(a.id, b.id))
	})
	for i := range all { // who has most keeps what cannot be divided
		all[i].over -= total / len(all)
		if i < total%len(all) {
			all[i].over--
		}
	}
	to := len(all) - 1
	for i := range all {
		for all[i].over > 0 {
			if all[to].over >= 0 {
				to--
				continue
			}
			count := min(all[i].over, -all[to].over)
			all[i].over -= count
			all[to].over += count
			if all[i].id == self {
				hand = append(hand, handing{all[to].id, count})
			}
		}
	}
	return hand
}

// hysteresis decides when a node hands shards over. It begins when the loads have differed by more
// than a tenth of an equal share, and more than 2, for a while, and ends when they are equal: a
// difference that is tolerated moves nothing.
type hysteresis struct {
	hold time.Duration

	since  time.Time // when the node was first seen to lead too many; zero if it does not
	giving bool
}

// step returns what the node is to hand over now.
func (h *hysteresis) step(
	now time.Time, loads map[cluster.NodeID]int, self cluster.NodeID,
) []handing {
	least, total := loads[self], 0
	for _, load := range loads {
		least, total = min(least, load), total+load
	}
	switch over := loads[self]-least > max(2, total/len(loads)/10); {
	case !over && !h.giving:
		h.since = time.Time{}
		return nil
	case h.since.IsZero():
		h.since = now
	}
	if h.giving = h.giving || now.Sub(h.since) >= h.hold; !h.giving {
		return nil
	}
	hand := surplus(loads, self)
	if len(hand) == 0 {
		h.giving, h.since = false, time.Time{}
	}
	return hand
}
