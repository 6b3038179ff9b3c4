package netmesh

import (
	"slices"
	"sync"

	"github.com/bmqelect/bmqelect/elector"
)

// queued is a message that waits for its peer.
type queued struct {
	group string
	msg   elector.Message
}

// queue holds what waits for one peer. It belongs to the peer and not to the
// link, so that a new connection loses nothing that was not sent.
type queue struct {
	limit int

	mu      sync.Mutex
	items   []queued
	dropped uint64
}

// push adds a message, unless the queue is full. An unsent heartbeat of the same
// group goes: the newer one says all that it says.
func (q *queue) push(group string, msg *elector.Message) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if msg.Kind == elector.LeaderHeartbeat {
		// The newer one goes to the end, not into the older one's place: it
		// must not overtake what was sent between the two.
		q.items = slices.DeleteFunc(q.items, func(i queued) bool {
			return i.msg.Kind == elector.LeaderHeartbeat && i.group == group
		})
	}
	if len(q.items) >= q.limit {
		q.dropped++
		return false
	}
	q.items = append(q.items, queued{group, *msg})
	return true
}

// swap returns all that waits and goes on with the empty slice that it is given.
func (q *queue) swap(empty []queued) []queued {
	q.mu.Lock()
	defer q.mu.Unlock()
	items := q.items
	q.items = empty[:0]
	return items
}

func (q *queue) clear() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.items = q.items[:0]
}

func (q *queue) state() (waiting int, dropped uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.items), q.dropped
}
