package scenario

import "slices"

// Without returns what is left of an action when some nodes are not there; nil
// if nothing is.
func Without(a Action, gone []NodeID) Action {
	switch a := a.(type) {
	case Cut:
		a.Pairs = pairsWithout(a.Pairs, gone)
		return orNothing(a, len(a.Pairs))
	case Reset:
		a.Pairs = pairsWithout(a.Pairs, gone)
		return orNothing(a, len(a.Pairs))
	case SetLink:
		a.Pairs = pairsWithout(a.Pairs, gone)
		return orNothing(a, len(a.Pairs))
	case Heal:
		a.Pairs = pairsWithout(a.Pairs, gone)
		return orNothing(a, len(a.Pairs)+count(a.All))
	case Partition:
		groups := make([][]NodeID, len(a.Groups))
		for i, g := range a.Groups {
			groups[i] = nodesWithout(g, gone)
		}
		return Partition{groups}
	case Transfer:
		return orNothing(a, count(!slices.Contains(gone, a.To)))
	}
	return processWithout(a, gone)
}

func processWithout(a Action, gone []NodeID) Action {
	switch a := a.(type) {
	case Crash:
		a.Nodes = nodesWithout(a.Nodes, gone)
		return orNothing(a, len(a.Nodes))
	case Restart:
		a.Nodes = nodesWithout(a.Nodes, gone)
		return orNothing(a, len(a.Nodes))
	case Pause:
		a.Nodes = nodesWithout(a.Nodes, gone)
		return orNothing(a, len(a.Nodes))
	case Resume:
		a.Nodes = nodesWithout(a.Nodes, gone)
		return orNothing(a, len(a.Nodes))
	case Stop:
		a.Nodes = nodesWithout(a.Nodes, gone)
		return orNothing(a, len(a.Nodes))
	case StepDown:
		a.Nodes = nodesWithout(a.Nodes, gone)
		return orNothing(a, len(a.Nodes))
	case Fitness:
		a.Nodes = nodesWithout(a.Nodes, gone)
		return orNothing(a, len(a.Nodes))
	}
	return a
}

// orNothing is a, or nil if it is about nothing.
func orNothing(a Action, about int) Action {
	if about == 0 {
		return nil
	}
	return a
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}

func nodesWithout(ids, gone []NodeID) []NodeID {
	return slices.DeleteFunc(slices.Clone(ids), func(id NodeID) bool { return slices.Contains(gone, id) })
}

func pairsWithout(pairs []Pair, gone []NodeID) []Pair {
	return slices.DeleteFunc(slices.Clone(pairs), func(p Pair) bool {
		return slices.Contains(gone, p.From) || slices.Contains(gone, p.To)
	})
}
