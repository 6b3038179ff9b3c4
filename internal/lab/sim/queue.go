package sim

import (
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/lsn"
)

// item is something that will happen: what handle does, at a simulated time.
// Which of the other fields mean something depends on handle.
type item struct {
	at     time.Duration
	seq    uint64 // order of insertion: breaks ties
	handle func(*Sim, *item)

	node     *node
	link     *link
	end      int    // of link: where it happens
	epoch    uint64 // of link, when it was sent
	boot     int    // of node, or of the sender
	late     bool   // outlives its connection
	term     lsn.Term
	evidence elector.Evidence
	message  elector.Message
	action   Action
}

func (it *item) before(o *item) bool {
	return it.at < o.at || it.at == o.at && it.seq < o.seq
}

// queue is a binary heap of items ordered by (at, seq). Items are used again:
// it allocates no more than the most that were ever queued at once.
type queue struct {
	heap []*item
	free []*item
	seq  uint64
}

// push queues a copy of it.
func (q *queue) push(it item) {
	p := q.blank()
	*p = it
	q.seq++
	p.seq = q.seq
	q.heap = append(q.heap, p)
	q.up(len(q.heap) - 1)
}

func (q *queue) blank() *item {
	n := len(q.free)
	if n == 0 {
		return new(item)
	}
	p := q.free[n-1]
	q.free = q.free[:n-1]
	return p
}

// peek is the next item, nil if there is none.
func (q *queue) peek() *item {
	if len(q.heap) == 0 {
		return nil
	}
	return q.heap[0]
}

// pop removes the next item; the caller gives it back with recycle.
func (q *queue) pop() *item {
	top := q.heap[0]
	last := len(q.heap) - 1
	q.heap[0] = q.heap[last]
	q.heap[last] = nil
	q.heap = q.heap[:last]
	q.down(0)
	return top
}

func (q *queue) recycle(it *item) {
	*it = item{}
	q.free = append(q.free, it)
}

func (q *queue) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !q.heap[i].before(q.heap[parent]) {
			return
		}
		q.heap[i], q.heap[parent] = q.heap[parent], q.heap[i]
		i = parent
	}
}

func (q *queue) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(q.heap) {
			return
		}
		if child+1 < len(q.heap) && q.heap[child+1].before(q.heap[child]) {
			child++
		}
		if !q.heap[child].before(q.heap[i]) {
			return
		}
		q.heap[i], q.heap[child] = q.heap[child], q.heap[i]
		i = child
	}
}
