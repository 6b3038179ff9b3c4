package live

import (
	"cmp"
	"maps"
	"slices"

	"github.com/bmqelect/bmqelect/cluster"
	"github.com/bmqelect/bmqelect/internal/daemon/admin"
	"github.com/bmqelect/bmqelect/internal/lab/scenario"
)

// faultPlan is what is wrong with the network by now: all of it is sent to a
// process that was started again.
type faultPlan struct {
	nodes []cluster.NodeID
	cut   map[scenario.Pair]bool
	links map[scenario.Pair]scenario.Link // other than perfect
}

func newFaultPlan(sc *scenario.Scenario) *faultPlan {
	f := &faultPlan{cut: map[scenario.Pair]bool{}, links: map[scenario.Pair]scenario.Link{}}
	for _, n := range sc.Nodes {
		f.nodes = append(f.nodes, n.ID)
	}
	if sc.Network != (scenario.Link{}) {
		for _, p := range f.pairs() {
			f.links[p] = sc.Network
		}
	}
	return f
}

// pairs are all directions.
func (f *faultPlan) pairs() (all []scenario.Pair) {
	for _, a := range f.nodes {
		for _, b := range f.nodes {
			if a != b {
				all = append(all, scenario.Pair{From: a, To: b})
			}
		}
	}
	return all
}

func (f *faultPlan) setCut(pairs []scenario.Pair, cut bool) {
	for _, p := range pairs {
		if cut {
			f.cut[p] = true
		} else {
			delete(f.cut, p)
		}
	}
}

// partition cuts what is between groups, and heals what is within one.
func (f *faultPlan) partition(groups [][]cluster.NodeID) {
	group := func(id cluster.NodeID) int {
		return slices.IndexFunc(groups, func(g []cluster.NodeID) bool { return slices.Contains(g, id) })
	}
	for _, p := range f.pairs() {
		g := group(p.From)
		f.setCut([]scenario.Pair{p}, g < 0 || g != group(p.To))
	}
}

// request is what one node is sent. Both ends of a cut direction drop it, so that
// it is cut also while one of them starts again.
func (f *faultPlan) request(id cluster.NodeID) admin.FaultRequest {
	r := admin.FaultRequest{HealAll: true}
	for _, p := range sortedPairs(f.cut) {
		switch id {
		case p.From:
			r.CutOut = append(r.CutOut, p.To)
		case p.To:
			r.CutIn = append(r.CutIn, p.From)
		}
	}
	for _, p := range sortedPairs(f.links) {
		if l := f.links[p]; p.From == id {
			r.Links = append(r.Links, admin.LinkFault{
				To: p.To, Loss: float64(l.Loss) / 1e6,
				Delay: cluster.Seconds(l.Delay.Seconds()), Jitter: cluster.Seconds(l.Jitter.Seconds()),
			})
		}
	}
	return r
}

func sortedPairs[V any](m map[scenario.Pair]V) []scenario.Pair {
	return slices.SortedFunc(maps.Keys(m), func(a, b scenario.Pair) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To))
	})
}

// none reports whether the network is perfect.
func (f *faultPlan) none() bool { return len(f.cut) == 0 && len(f.links) == 0 }
