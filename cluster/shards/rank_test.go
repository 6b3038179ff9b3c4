package shards

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
)

// ranked returns the nodes in their order for a shard, the first one first.
func ranked(shard string, nodes []cluster.NodeID) []cluster.NodeID {
	order := make([]cluster.NodeID, len(nodes))
	for _, id := range nodes {
		order[rank(shard, id, nodes)] = id
	}
	return order
}

// Nodes of different versions and machines must agree: these figures never change.
func TestRankIsTheSameEverywhere(t *testing.T) {
	for shard, want := range map[string]struct {
		score int
		order string
	}{
		"shard/0": {180660827, "n2 n3 n4 n1 n0 "},
		"shard/1": {1776706158, "n0 n4 n3 n1 n2 "},
		"orders":  {546688747, "n4 n0 n3 n1 n2 "},
		"":        {2059910070, "n0 n1 n3 n2 n4 "},
	} {
		order := ""
		for _, id := range ranked(shard, nodes(5)) {
			order += string(id) + " "
		}
		require.Equal(t, want.score, cluster.Rendezvous(shard, "n0"), "%q", shard)
		require.Equal(t, want.order, order, "%q", shard)
	}
	require.NotEqual(t, cluster.Rendezvous("ab", "c"), cluster.Rendezvous("a", "bc"),
		"the name ends before the node begins")
	require.LessOrEqual(t, cluster.Rendezvous("shard/0", "n0"), math.MaxInt32)
}

func nodes(n int) (ids []cluster.NodeID) {
	for i := range n {
		ids = append(ids, cluster.NodeID(fmt.Sprintf("n%d", i)))
	}
	return ids
}

// With k of n nodes dead only their shards move, and each survivor gets about as much. The bound is
// five standard deviations: the figures are always the same, so it is never missed by chance.
func TestOnlyShardsOfTheDeadMove(t *testing.T) {
	const shards = 10_000
	for n := 2; n <= 7; n++ {
		for k := range n {
			all, loads := nodes(n), map[cluster.NodeID]int{}
			alive := all[k:]
			for i := range shards {
				name := "shard/" + strconv.Itoa(i)
				before, after := ranked(name, all)[0], ranked(name, alive)[0]
				if slices.Contains(alive, before) {
					require.Equal(t, before, after, "%s moves, with %d of %d dead", name, k, n)
				}
				loads[after]++
			}
			p := 1 / float64(len(alive))
			for _, id := range alive {
				require.InDelta(t, shards*p, loads[id], 5*math.Sqrt(shards*p*(1-p)),
					"%s of %d, %d dead", id, n, k)
			}
		}
	}
}
