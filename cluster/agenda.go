package cluster

import (
	"container/heap"

	"github.com/bmqelect/bmqelect/elector"
)

// agenda holds the elections in order of when their machines want a tick, so that
// the driver needs one timer and looks at one election, however many there are.
type agenda []*group

func (a agenda) Len() int           { return len(a) }
func (a agenda) Less(i, j int) bool { return a[i].wake < a[j].wake }
func (a agenda) Swap(i, j int) {
	a[i], a[j] = a[j], a[i]
	a[i].place, a[j].place = i, j
}

// Push and Pop are for package heap.
func (a *agenda) Push(x any) {
	g := x.(*group)
	g.place = len(*a)
	*a = append(*a, g)
}

// Pop removes the last element, as package heap wants it.
func (a *agenda) Pop() any {
	last := (*a)[len(*a)-1]
	(*a)[len(*a)-1] = nil
	*a = (*a)[:len(*a)-1]
	last.place = nowhere
	return last
}

// nowhere is the place of an election that is not on the agenda.
const nowhere = -1

func (a *agenda) add(g *group)    { heap.Push(a, g) }
func (a *agenda) remove(g *group) { heap.Remove(a, g.place) }

// moved says that g.wake has changed.
func (a *agenda) moved(g *group) {
	if g.place != nowhere {
		heap.Fix(a, g.place)
	}
}

// next is when the first tick is due; Never if none is.
func (a agenda) next() elector.Time {
	if len(a) == 0 {
		return elector.Never
	}
	return a[0].wake
}
