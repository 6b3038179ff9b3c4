package sim

import (
	"time"

	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
)

// happening is what will happen at a simulated time: a message arrives, a process is ticked, or
// something else is done. Messages and ticks are so many that none of them may need memory of
// its own.
type happening struct {
	do func() // nil for a message and a tick

	node *node // that sent the message, or is ticked
	boot int   // of its process

	link  *link           // that the message comes by; nil for a tick
	end   int             // of the link, where it arrives
	epoch uint64          // of the connection that it was sent over
	late  bool            // it may outlive that connection
	in    algorithm.Input // the algorithm.Received
	// number is that of its Event.
	number int
}

// queue holds what will happen, in the order of time; of the same time, in the order in which it
// was queued.
type queue struct {
	heap []place
	what []happening // by place.slot
	free []int32     // slots of what
	seq  uint64
}

// place is a happening's place in the queue. It is kept apart from the happening, so that what
// the heap moves is small and has no pointers.
type place struct {
	at   time.Duration
	seq  uint64 // order of insertion: breaks ties
	slot int32
}

func (p *place) before(q *place) bool { return p.at < q.at || p.at == q.at && p.seq < q.seq }

// at queues what is done at time t, after all that is queued for the same time.
func (q *queue) at(t time.Duration, do func()) { q.add(t, happening{do: do}) }

// add queues what happens at time t, after all that is queued for the same time.
func (q *queue) add(t time.Duration, what happening) {
	slot := int32(len(q.what))
	if n := len(q.free); n > 0 {
		slot, q.free = q.free[n-1], q.free[:n-1]
		q.what[slot] = what
	} else {
		q.what = append(q.what, what)
	}
	q.seq++
	q.heap = append(q.heap, place{})
	q.up(len(q.heap)-1, place{t, q.seq, slot})
}

// next removes and returns what happens next, and when, if that is not after limit.
func (q *queue) next(limit time.Duration) (at time.Duration, what happening, ok bool) {
	if len(q.heap) == 0 || q.heap[0].at > limit {
		return 0, happening{}, false
	}
	first, last := q.heap[0], len(q.heap)-1
	moved := q.heap[last]
	if q.heap = q.heap[:last]; last > 0 {
		q.down(moved)
	}
	q.free = append(q.free, first.slot)
	return first.at, q.what[first.slot], true
}

// up puts p at i, or as far above as it belongs.
func (q *queue) up(i int, p place) {
	for i > 0 {
		parent := (i - 1) / 2
		if !p.before(&q.heap[parent]) {
			break
		}
		q.heap[i] = q.heap[parent]
		i = parent
	}
	q.heap[i] = p
}

// down puts p at the top, or as far below as it belongs.
func (q *queue) down(p place) {
	i := 0
	for {
		child := 2*i + 1
		if child >= len(q.heap) {
			break
		}
		if right := child + 1; right < len(q.heap) && q.heap[right].before(&q.heap[child]) {
			child = right
		}
		if !q.heap[child].before(&p) {
			break
		}
		q.heap[i] = q.heap[child]
		i = child
	}
	q.heap[i] = p
}
