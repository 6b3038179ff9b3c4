package shards

import (
	"cmp"
	"slices"

	"github.com/bmqelect/bmqelect/cluster"
)

// score is the weight of a node in rendezvous hashing: the node of the highest one comes first
// for a shard. It has 31 bits, so that it is a priority on every machine, and the same in every
// version: nodes of two versions must agree.
func score(shard string, node cluster.NodeID) int {
	const offset, prime = 14695981039346656037, 1099511628211 // FNV-1a
	h := uint64(offset)
	for _, text := range [...]string{shard, "\x00", string(node)} {
		for i := range len(text) {
			h = (h ^ uint64(text[i])) * prime
		}
	}
	// The last bytes of FNV hardly change its high bits. This is the finalizer of MurmurHash3.
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return int(h >> 33)
}

// ranked returns the nodes in their order for a shard, the first one first. As in elections, the
// higher ID comes first if scores are equal.
func ranked(shard string, nodes []cluster.NodeID) []cluster.NodeID {
	return slices.SortedFunc(slices.Values(nodes), func(a, b cluster.NodeID) int {
		return cmp.Or(cmp.Compare(score(shard, b), score(shard, a)), cmp.Compare(b, a))
	})
}
