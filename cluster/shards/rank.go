package shards

import (
	"cmp"
	"slices"

	"github.com/bmqelect/bmqelect/cluster"
)

// ranked returns the nodes in their order for a shard, the first one first. As in elections, the
// higher ID comes first if scores are equal.
func ranked(shard string, nodes []cluster.NodeID) []cluster.NodeID {
	return slices.SortedFunc(slices.Values(nodes), func(a, b cluster.NodeID) int {
		first, second := cluster.Rendezvous(shard, b), cluster.Rendezvous(shard, a)
		return cmp.Or(cmp.Compare(first, second), cmp.Compare(b, a))
	})
}
