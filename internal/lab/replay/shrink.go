package replay

import (
	"cmp"
	"slices"
	"time"

	"github.com/bmqelect/bmqelect/internal/lab/scenario"
	"github.com/bmqelect/bmqelect/internal/lab/verdict"
)

// Reduced says which part of a scenario is played.
type Reduced struct {
	Drop    []int             // steps of the timeline that are left out, counted from 1
	Without []scenario.NodeID // nodes that never start and are not voters
	Until   time.Duration     // when the run ends; 0 for the scenario's own end
}

// IsWhole reports whether nothing is left out.
func (r Reduced) IsWhole() bool { return len(r.Drop) == 0 && len(r.Without) == 0 && r.Until == 0 }

// Apply returns the reduced scenario. Expectations are left out with the nodes
// and the time that they are about: what remains is checked against the
// invariants. Nothing is shared with sc that Apply changes.
func (r Reduced) Apply(sc *scenario.Scenario) *scenario.Scenario {
	small := *sc
	small.Timeline, small.Nodes = nil, nil
	if r.Until > 0 {
		small.Duration = min(r.Until, sc.Duration)
	}
	gone := func(id scenario.NodeID) bool { return slices.Contains(r.Without, id) }
	for _, n := range sc.Nodes {
		if !gone(n.ID) {
			small.Nodes = append(small.Nodes, n)
		}
	}
	if gone(sc.Begin.Leader) {
		small.Begin = scenario.Begin{}
	}
	small.Election.Voters = slices.DeleteFunc(slices.Clone(sc.Election.Voters), gone)
	for i, step := range sc.Timeline {
		if slices.Contains(r.Drop, i+1) || step.At > small.Duration {
			continue
		}
		if a, ok := scenario.Without(step.Action, r.Without); ok {
			step.Action = a
			small.Timeline = append(small.Timeline, step)
		}
	}
	if !r.IsWhole() {
		small.Expect = nil
	}
	return &small
}

// breaks reports whether the reduced scenario still violates an invariant, and
// when.
func (r Reduced) breaks(sc *scenario.Scenario, seed uint64) (verdict.Run, bool) {
	run, err := Simulate(r.Apply(sc), Options{Seed: seed})
	return run, err == nil && len(run.History.Broken) > 0 && len(run.History.Problems) == 0
}

// Shrink looks for the smallest part of a scenario that still violates an
// invariant under that seed: it ends the run at the violation, then leaves out
// nodes and steps one by one as long as something breaks. ok is false if nothing
// breaks to begin with.
func Shrink(sc *scenario.Scenario, seed uint64) (r Reduced, run verdict.Run, ok bool) {
	run, ok = r.breaks(sc, seed)
	if !ok {
		return r, run, false
	}
	try := func(next Reduced) bool {
		smaller, broke := next.breaks(sc, seed)
		if broke {
			r, run = next, smaller
		}
		return broke
	}
	for improved := true; improved; {
		improved = false
		for _, n := range sc.Nodes {
			if !slices.Contains(r.Without, n.ID) {
				improved = try(Reduced{r.Drop, with(r.Without, n.ID), r.Until}) || improved
			}
		}
		for i := range sc.Timeline {
			if !slices.Contains(r.Drop, i+1) {
				improved = try(Reduced{with(r.Drop, i+1), r.Without, r.Until}) || improved
			}
		}
		if at := run.History.Duration; r.Until == 0 || at < r.Until {
			improved = try(Reduced{r.Drop, r.Without, at}) || improved
		}
	}
	return r, run, true
}

// with returns a sorted copy of a list with one more item.
func with[T cmp.Ordered](list []T, item T) []T {
	return slices.Sorted(slices.Values(append(slices.Clip(list), item)))
}
