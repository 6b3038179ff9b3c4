package guarded

import (
	"container/heap"

	"github.com/bmqelect/bmqelect/elector"
)

// Timer is when something is due for its owner.
type Timer[Owner any] struct {
	Owner Owner
	At    elector.Time

	place int // in its queue, from 1; 0 if it is in none
}

// Set reports whether the timer is in a queue.
func (t *Timer[Owner]) Set() bool { return t.place > 0 }

// Queue holds timers, the earliest first, so that one alarm serves several elections. It is not
// safe for concurrent use.
type Queue[Owner any] []entry[Owner]

// entry is a timer in a queue. It has a copy of Timer.At, so that the heap compares neighbours in
// the slice and follows no pointers.
type entry[Owner any] struct {
	*Timer[Owner]

	due elector.Time
}

// Set changes when t is due, and puts it into the queue if it is not there.
func (q *Queue[Owner]) Set(t *Timer[Owner], at elector.Time) {
	before := t.At
	if t.At = at; !t.Set() {
		heap.Push(q, t)
	} else if at != before {
		(*q)[t.place-1].due = at
		heap.Fix(q, t.place-1)
	}
}

// Drop takes out a timer if it is in the queue.
func (q *Queue[Owner]) Drop(t *Timer[Owner]) {
	if t.Set() {
		heap.Remove(q, t.place-1)
	}
}

// Next is when the first timer is due; Never if there is none.
func (q Queue[Owner]) Next() elector.Time {
	if len(q) == 0 {
		return elector.Never
	}
	return q[0].due
}

// Due returns the timers that are due by then, in no order. It looks at no more than twice as many.
func (q Queue[Owner]) Due(by elector.Time) (due []*Timer[Owner]) {
	if q.Next() <= by && len(q) > 0 {
		due = append(due, q[0].Timer)
	}
	for i := 0; i < len(due); i++ { // what is due later than its parent in the heap follows it
		for child := 2*due[i].place - 1; child <= 2*due[i].place && child < len(q); child++ {
			if q[child].due <= by {
				due = append(due, q[child].Timer)
			}
		}
	}
	return due
}

// Len, Less, Swap, Push and Pop are for package heap.
func (q Queue[Owner]) Len() int           { return len(q) }
func (q Queue[Owner]) Less(i, j int) bool { return q[i].due < q[j].due }
func (q Queue[Owner]) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].place, q[j].place = i+1, j+1
}

// Push is for package heap.
func (q *Queue[Owner]) Push(x any) {
	t := x.(*Timer[Owner])
	*q = append(*q, entry[Owner]{t, t.At})
	t.place = len(*q)
}

// Pop is for package heap.
func (q *Queue[Owner]) Pop() any {
	last := (*q)[len(*q)-1]
	(*q)[len(*q)-1] = entry[Owner]{}
	*q = (*q)[:len(*q)-1]
	last.place = 0
	return last.Timer
}
