package sim

import (
	"container/heap"
	"time"
)

// item is something that will happen at a simulated time.
type item struct {
	at  time.Duration
	seq uint64 // order of insertion: breaks ties
	do  func()
}

// queue holds what will happen, in the order of (at, seq).
type queue struct {
	items []item // a heap
	seq   uint64
}

func (q *queue) Len() int      { return len(q.items) }
func (q *queue) Swap(i, j int) { q.items[i], q.items[j] = q.items[j], q.items[i] }
func (q *queue) Push(it any)   { q.items = append(q.items, it.(item)) }

func (q *queue) Less(i, j int) bool {
	a, b := &q.items[i], &q.items[j]
	return a.at < b.at || a.at == b.at && a.seq < b.seq
}

func (q *queue) Pop() any {
	last := len(q.items) - 1
	it := q.items[last]
	q.items[last] = item{}
	q.items = q.items[:last]
	return it
}

// at queues what happens at time t, after all that is queued for the same time.
func (q *queue) at(t time.Duration, do func()) {
	q.seq++
	heap.Push(q, item{t, q.seq, do})
}

// next removes and returns what happens next, if that is not after limit.
func (q *queue) next(limit time.Duration) (it item, ok bool) {
	if len(q.items) == 0 || q.items[0].at > limit {
		return item{}, false
	}
	return heap.Pop(q).(item), true
}
