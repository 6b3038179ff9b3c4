package cluster

import (
	"slices"
	"sync"
	"time"

	"github.com/bmqelect/bmqelect/elector"
)

// Event is a change of what a node is in an election, or of whom it follows.
type Event struct {
	Group string
	Time  time.Time // wall clock of this node, for people
	elector.Transition
	// Missed is how many older events were dropped since the last one that told
	// of any, because the subscriber did not keep up: this one or those that
	// still waited came after a gap.
	Missed int
}

// Subscription delivers a node's events in order. A subscriber that is slow
// loses the oldest ones, never the newest: its last word is never stale.
type Subscription struct {
	events chan Event
	group  string // whose events; "" for all
	hub    *hub
	missed int // owned by the hub's publisher
}

// Events is the channel of events. It is closed when the subscription or the
// node is closed.
func (s *Subscription) Events() <-chan Event { return s.events }

// Close ends the subscription. It may be called more than once.
func (s *Subscription) Close() { s.hub.remove(s) }

// hub hands events to subscribers without ever waiting for one.
type hub struct {
	mu     sync.Mutex
	subs   []*Subscription
	closed bool
	missed uint64 // events dropped for slow subscribers, of all
}

// subscribe returns a subscription to the events of a group, or of all if it is
// "", that holds up to buffer events, at least one.
func (h *hub) subscribe(group string, buffer int) *Subscription {
	s := &Subscription{events: make(chan Event, max(buffer, 1)), group: group, hub: h}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		close(s.events)
		return s
	}
	h.subs = append(h.subs, s)
	return s
}

func (h *hub) publish(e Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.subs {
		if s.group == "" || s.group == e.Group {
			s.push(e)
		}
	}
}

// push delivers e, at the cost of the oldest event if the buffer is full.
func (s *Subscription) push(e Event) {
	for {
		e.Missed = s.missed
		select {
		case s.events <- e:
			s.missed = 0
			return
		default:
		}
		select {
		case old := <-s.events:
			s.missed += 1 + old.Missed
			if cap(s.events) > 1 { // with room for one it asked for the newest alone
				s.hub.missed++
			}
		default: // the subscriber made room meanwhile
		}
	}
}

func (h *hub) remove(s *Subscription) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if i := slices.Index(h.subs, s); i >= 0 {
		h.subs = slices.Delete(h.subs, i, i+1)
		close(s.events)
	}
}

// figures are how many events were missed, and how many subscriptions are open.
func (h *hub) figures() (missed uint64, open int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.missed, len(h.subs)
}

func (h *hub) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.subs {
		close(s.events)
	}
	h.subs, h.closed = nil, true
}
