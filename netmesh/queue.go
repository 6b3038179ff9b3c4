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

func (i *queued) key() queueKey { return queueKey{i.group, i.msg.Kind} }

// queueKey is shared by no two messages that wait: see queue.
type queueKey struct {
	group string
	kind  elector.Kind
}

// queue holds what waits for one peer. It belongs to the peer and not to the
// link, so that a new connection loses nothing that was not sent.
//
// A newer message replaces an older one of the same group and kind, and goes to
// the end: it must not overtake what was queued between the two. The terms,
// rounds and send times of one sender only rise, and its peer acts on the newest
// of them, so the newer message says all that the older one still could. So at
// most one message of each kind waits for each election of this node: the queue
// needs no limit, and nothing that others send makes it grow. What package elector
// holds back for the disk keeps the same rule.
type queue struct {
	mu    sync.Mutex
	items []queued         // in order; one that was replaced is zero
	last  map[queueKey]int // where in items the message of that key is
}

// push adds a message.
func (q *queue) push(group string, msg *elector.Message) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.last == nil {
		q.last = make(map[queueKey]int)
	}
	if len(q.items) >= 2*len(q.last)+8 { // so it is done once in as many pushes as it looks at
		q.compact()
	}
	item := queued{group, *msg}
	if old, ok := q.last[item.key()]; ok { // §2.5
		q.items[old] = queued{}
	}
	q.last[item.key()] = len(q.items)
	q.items = append(q.items, item)
}

// compact removes what was replaced. Called with mu held.
func (q *queue) compact() {
	if len(q.items) == len(q.last) {
		return
	}
	q.items = slices.DeleteFunc(q.items, func(i queued) bool { return i.group == "" })
	for i := range q.items {
		q.last[q.items[i].key()] = i
	}
}

// swap returns all that waits and goes on with the empty slice that it is given.
func (q *queue) swap(empty []queued) []queued {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.compact()
	items := q.items
	q.items = empty[:0]
	for i := range items {
		delete(q.last, items[i].key()) // not clear: its cost is that of the fullest time
	}
	return items
}

func (q *queue) clear() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.items, q.last = nil, nil
}

func (q *queue) waiting() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.last)
}
