package sim

import (
	"container/heap"
	"time"

	"github.com/bmqelect/bmqelect/elector"
)

const million = 1_000_000

// clock is one boot's monotonic clock: it read zero at the boot and runs fast by
// ppm parts per million. Two boots' readings have nothing to do with each other.
type clock struct {
	boot time.Duration // simulated time of the boot
	zero elector.Time
	ppm  int64
}

// at is the clock's reading at a simulated time.
func (c clock) at(now time.Duration) elector.Time {
	elapsed := int64(now - c.boot)
	return c.zero + elector.Time(elapsed+mulDiv(elapsed, c.ppm, million))
}

// When is the first simulated time at which the clock reads local or later; the
// farthest time there is for elector.Never.
func (c clock) When(local elector.Time) time.Duration {
	if local == elector.Never {
		return forever
	}
	t := c.boot + time.Duration(mulDiv(int64(local-c.zero), million, million+c.ppm))
	for c.at(t) < local {
		t++
	}
	for c.at(t-1) >= local {
		t--
	}
	return t
}

// forever is later than every simulated time.
const forever time.Duration = 1<<63 - 1

// longAgo is earlier than every simulated time.
const longAgo = -forever

// mulDiv is x*num/den rounded toward zero, for num up to some millions, without
// the overflow of x*num.
func mulDiv(x, num, den int64) int64 { return x/den*num + x%den*num/den }

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

func (q *queue) Less(i, j int) bool {
	a, b := &q.items[i], &q.items[j]
	return a.at < b.at || a.at == b.at && a.seq < b.seq
}

// Push and Pop are only for package heap, and would allocate a box for each item.
func (q *queue) Push(any) { panic("sim: use at") }
func (q *queue) Pop() any { panic("sim: use next") }

// at queues what happens at time t, after all that is queued for the same time.
func (q *queue) at(t time.Duration, do func()) {
	q.seq++
	q.items = append(q.items, item{t, q.seq, do})
	heap.Fix(q, len(q.items)-1)
}

// next removes and returns what happens next, if that is not after limit.
func (q *queue) next(limit time.Duration) (it item, ok bool) {
	if len(q.items) == 0 || q.items[0].at > limit {
		return item{}, false
	}
	last := len(q.items) - 1
	q.Swap(0, last)
	it = q.items[last]
	q.items[last] = item{}
	q.items = q.items[:last]
	if last > 0 {
		heap.Fix(q, 0)
	}
	return it, true
}
