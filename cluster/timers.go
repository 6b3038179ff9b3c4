package cluster

import (
	"container/heap"
	"sync"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/base/clock"
)

// timer is when something is due in one election.
type timer struct {
	g     *group
	at    elector.Time
	index int // in its queue; -1 if it is in none
}

// timerQueue holds timers, the earliest first, so that one alarm serves all elections.
type timerQueue []*timer

// set changes when t is due, and puts it into the queue if it is not there.
func (q *timerQueue) set(t *timer, at elector.Time) {
	if t.at = at; t.index < 0 {
		heap.Push(q, t)
	} else {
		heap.Fix(q, t.index)
	}
}

func (q *timerQueue) remove(t *timer) { heap.Remove(q, t.index) }

// next is when the first timer is due; Never if there is none.
func (q timerQueue) next() elector.Time {
	if len(q) == 0 {
		return elector.Never
	}
	return q[0].at
}

// Len, Less, Swap, Push and Pop are for package heap.
func (q timerQueue) Len() int           { return len(q) }
func (q timerQueue) Less(i, j int) bool { return q[i].at < q[j].at }
func (q timerQueue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

// Push is for package heap.
func (q *timerQueue) Push(x any) {
	t := x.(*timer)
	t.index = len(*q)
	*q = append(*q, t)
}

// Pop is for package heap.
func (q *timerQueue) Pop() any {
	last := (*q)[len(*q)-1]
	(*q)[len(*q)-1] = nil
	*q = (*q)[:len(*q)-1]
	last.index = -1
	return last
}

// deadlineWatcher wakes the elections whose guarded work must stop, or has had its time.
// It has a goroutine of its own, so that guarded work learns in time that it must stop even
// if the driver is held up.
type deadlineWatcher struct {
	clock clock.Clock
	mu    sync.Mutex
	queue timerQueue
	wake  chan struct{} // has an element if the first timer may have changed
}

func newDeadlineWatcher(c clock.Clock) *deadlineWatcher {
	return &deadlineWatcher{clock: c, wake: make(chan struct{}, 1)}
}

// arm asks for t to be due at the given time or before. A time that moves on, as a lease
// does with every heartbeat, is looked at when the time before it has come.
func (w *deadlineWatcher) arm(t *timer, at elector.Time) {
	if at == elector.Never {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if t.index >= 0 && t.at <= at {
		return
	}
	w.queue.set(t, at)
	if w.queue[0] == t {
		wake(w.wake)
	}
}

// run calls expired for each election that is due, until quit.
func (w *deadlineWatcher) run(expired func(*group), quit <-chan struct{}) {
	alarm := clock.NewAlarm(w.clock)
	defer alarm.Close()
	for {
		due, next := w.due()
		for _, g := range due {
			expired(g) // arms its timer again, if there is more to come
		}
		if len(due) > 0 {
			continue
		}
		alarm.Set(time.Duration(next))
		select {
		case <-w.wake:
		case <-alarm.Rings():
		case <-quit:
			return
		}
	}
}

func (w *deadlineWatcher) due() (due []*group, next elector.Time) {
	now := elector.Time(w.clock.Now())
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.queue.next() <= now {
		due = append(due, w.queue[0].g)
		w.queue.remove(w.queue[0])
	}
	return due, w.queue.next()
}

// wake fills a channel that holds one element. It never waits.
func wake(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
