package sim_test

import (
	"slices"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/sim"
)

// shape leaves the links of a topology, and cuts all others.
func shape(s *sim.Sim, linked func(a, b elector.NodeID) bool) error {
	for _, a := range s.Nodes() {
		for _, b := range s.Nodes() {
			if a == b {
				continue
			}
			do := s.Cut
			if linked(a, b) || linked(b, a) {
				do = s.Heal
			}
			if err := do(a, b); err != nil {
				return err
			}
		}
	}
	return nil
}

// hub is a star: all see the one in the middle alone.
func hub(middle elector.NodeID) func(a, b elector.NodeID) bool {
	return func(a, _ elector.NodeID) bool { return a == middle }
}

// leaf leaves one node a single link, and all others theirs.
func leaf(far, near elector.NodeID) func(a, b elector.NodeID) bool {
	return func(a, b elector.NodeID) bool { return a != far && b != far || a == far && b == near }
}

// bridge is two halves that do not see each other, and a node that sees both.
func bridge(s *sim.Sim, middle elector.NodeID) func(a, b elector.NodeID) bool {
	half := func(id elector.NodeID) bool { return slices.Index(s.Nodes(), id) < len(s.Nodes())/2 }
	return func(a, b elector.NodeID) bool { return a == middle || b != middle && half(a) == half(b) }
}
