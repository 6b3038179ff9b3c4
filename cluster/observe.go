package cluster

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/lsn"
)

// Subscribe returns a subscription to the events of all elections of this node from now on. Up to
// buffer events wait for the subscriber. Subscribe before reading Status to miss nothing.
func (n *Node) Subscribe(buffer int) *Subscription { return n.hub.subscribe("", buffer) }

// Subscribe is Node.Subscribe for the events of this election alone.
func (e *Election) Subscribe(buffer int) *Subscription {
	return e.n.hub.subscribe(e.p.Name, buffer)
}

// Event is a change of a node's role in an election, or of the leader that it follows.
type Event struct {
	Group string
	Time  time.Time // wall clock of this node, for people
	elector.Transition
	LeaderMeta string // Config.Meta of that leader
	// Missed is how many older events were dropped because the subscriber was slow, since the
	// last event with a count. The gap is before this event, or before one of those that waited.
	Missed int
}

// Subscription delivers a node's events in order. A slow subscriber loses the oldest events, never
// the newest: the last event that it gets is never stale.
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
	subs   map[string][]*Subscription // by the group; "" for all
	closed bool
	open   int    // subscriptions
	missed uint64 // events dropped for slow subscribers, of all
}

// subscribe returns a subscription to the events of a group, or of all groups if it is "". It has
// room for buffer events, and for one at least.
func (h *hub) subscribe(group string, buffer int) *Subscription {
	s := &Subscription{events: make(chan Event, max(buffer, 1)), group: group, hub: h}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		close(s.events)
		return s
	}
	if h.subs == nil {
		h.subs = map[string][]*Subscription{}
	}
	h.subs[group] = append(h.subs[group], s)
	h.open++
	return s
}

// publish is called by the driver.
func (h *hub) publish(group string, t elector.Transition, at time.Time, leaderMeta string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, subs := range [][]*Subscription{h.subs[""], h.subs[group]} {
		for _, s := range subs {
			s.push(Event{Group: group, Time: at, Transition: t, LeaderMeta: leaderMeta})
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
			if cap(s.events) > 1 { // who has room for one wants only the newest
				s.hub.missed++
			}
		default: // the subscriber made room meanwhile
		}
	}
}

func (h *hub) remove(s *Subscription) {
	h.mu.Lock()
	defer h.mu.Unlock()
	subs := h.subs[s.group]
	if i := slices.Index(subs, s); i >= 0 {
		if h.subs[s.group] = slices.Delete(subs, i, i+1); len(subs) == 1 {
			delete(h.subs, s.group)
		}
		h.open--
		close(s.events)
	}
}

// counts are how many events were missed, and how many subscriptions are open.
func (h *hub) counts() (missed uint64, open int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.missed, h.open
}

func (h *hub) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, subs := range h.subs {
		for _, s := range subs {
			close(s.events)
		}
	}
	h.subs, h.open, h.closed = nil, 0, true
}

// Leader says who leads in which term, as one node sees it. Values can be compared.
type Leader struct {
	Node NodeID // "" for none
	Term lsn.Term
	// Meta is Config.Meta of the process that leads; "" if its version is older.
	Meta string
}

// Leader returns the leader that this node is or follows. If there is none it waits for one. The
// error is the cause of ctx or the node's failure, or wraps ErrClosed.
func (e *Election) Leader(ctx context.Context) (Leader, error) {
	for l := range e.Observe(ctx) {
		if l.Node != "" {
			return l, nil
		}
	}
	return Leader{}, e.failed("search for the leader",
		cmp.Or(context.Cause(ctx), e.p.Ended(), ErrClosed))
}

// Observe yields the leader that this node is or follows: the present one first, then every
// change. The zero Leader means that there is none. No leadership is yielded twice in a row. A
// slow consumer misses leaders of the past, never the newest. Observe ends with ctx, or when the
// election is closed.
func (e *Election) Observe(ctx context.Context) iter.Seq[Leader] {
	return func(yield func(Leader) bool) {
		sub := e.Subscribe(1) // holds the newest event
		defer sub.Close()
		s, err := e.n.loop.Look(ctx, e.p)
		now := asLeader(s.Leader, s.Term, s.LeaderMeta)
		if err != nil || !yield(now) {
			return
		}
		for {
			select {
			case event, ok := <-sub.Events():
				if !ok || ctx.Err() != nil {
					return
				}
				next := asLeader(event.Leader, event.Term, event.LeaderMeta)
				if next != now && !yield(next) {
					return
				}
				now = next
			case <-e.p.Gone.Done():
				return
			case <-ctx.Done():
				return
			}
		}
	}
}

// asLeader returns the zero Leader if there is no leader.
func asLeader(id NodeID, term lsn.Term, meta string) Leader {
	if id == "" {
		return Leader{}
	}
	return Leader{id, term, meta}
}
