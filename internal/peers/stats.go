package main

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// quantile returns the smallest value that at least the part q of all values does not
// exceed (nearest rank); 0 of none.
func quantile(values []time.Duration, q float64) time.Duration {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[int(math.Ceil(q*float64(len(sorted))))-1]
}

// span is a time in which a node said that it led.
type span struct{ from, to int64 }

// overlap is the time in which two nodes or more said that they led.
func overlap(nodes [][]span) time.Duration {
	type edge struct {
		at    int64
		leads int // 1 begins, -1 ends
	}
	var edges []edge
	for _, spans := range nodes {
		for _, s := range spans {
			edges = append(edges, edge{s.from, 1}, edge{s.to, -1})
		}
	}
	slices.SortFunc(edges, func(a, b edge) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.leads, b.leads))
	})
	total, leaders, since := int64(0), 0, int64(0)
	for _, e := range edges {
		if leaders >= 2 {
			total += e.at - since
		}
		leaders, since = leaders+e.leads, e.at
	}
	return time.Duration(total)
}
