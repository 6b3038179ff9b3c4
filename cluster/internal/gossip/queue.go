package gossip

import (
	"sync"

	"github.com/bmqelect/bmqelect/elector"
)

// eventQueue stands between memberlist, which calls its listeners under its own
// lock, and a consumer that may be slow. push never blocks; what waits is merged
// per member, so the queue never holds more than two events for each name.
type eventQueue struct {
	deliver func(Event)

	mu      sync.Mutex
	waiting map[eventKey]Event
	order   []eventKey
	wake    chan struct{}
}

// eventKey separates conflicts from the life of a member: one must not hide the other.
type eventKey struct {
	node     elector.NodeID
	conflict bool
}

func newEventQueue(deliver func(Event)) *eventQueue {
	return &eventQueue{
		deliver: deliver,
		waiting: map[eventKey]Event{},
		wake:    make(chan struct{}, 1),
	}
}

func (q *eventQueue) push(e Event) {
	if q.deliver == nil {
		return
	}
	key := eventKey{e.Member.Node, e.Kind == Conflict}
	q.mu.Lock()
	if old, ok := q.waiting[key]; !ok {
		q.order = append(q.order, key)
	} else if old.Kind == Joined && e.Kind == Updated {
		e.Kind = Joined // the consumer has not heard of the member yet
	}
	q.waiting[key] = e
	q.mu.Unlock()
	signal(q.wake)
}

func (q *eventQueue) pop() (Event, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.order) == 0 {
		return Event{}, false
	}
	key := q.order[0]
	q.order = q.order[1:]
	e := q.waiting[key]
	delete(q.waiting, key)
	return e, true
}

// run delivers until stop is closed; what waits then is dropped.
func (q *eventQueue) run(stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-q.wake:
		}
		for q.deliverNext(stop) {
		}
	}
}

func (q *eventQueue) deliverNext(stop <-chan struct{}) bool {
	select {
	case <-stop:
		return false
	default:
	}
	e, ok := q.pop()
	if ok {
		q.deliver(e)
	}
	return ok
}

// signal wakes a receiver of c, whose buffer is one, if it is not awake already.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
