// Package store is a model of the stores that members ask for a lease, ZooKeeper and etcd:
// what both have in common, as far as their recipes for an election use it. It is one
// machine, which never crashes; whoever runs it decides which members reach it. So in an
// outage only the ways to the store are cut, and the store goes on counting time. (A real
// ensemble that elects a leader of its own gives all leases their full time again.)
//
// A lease (ZooKeeper: a session) belongs to one client and ends when it was not renewed for
// its TTL, counted on the store's own clock, and then at the next of its checks, which come
// at a fixed interval: ZooKeeper's tick, etcd's 500 ms. A client makes one key with its lease
// (ephemeral and sequential; in etcd, named after the lease). The store numbers the keys as
// it makes them: that is ZooKeeper's czxid and etcd's create revision. Keys end with their
// lease. Who watches a key gets one Event when it is gone.
//
// Connections are not modelled. In place of what TCP repeats, a client repeats a Request that
// has no Reply yet, and a renewal names the keys that the client watches: a lost Event is
// sent again. Every request may arrive twice.
package store

import (
	"cmp"
	"slices"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
)

// A lease of one client, and its key.
type lease struct {
	id      uint64
	client  algorithm.NodeID
	ttl     time.Duration
	expires algorithm.Time
	since   uint64 // requests before this one are of a connection that the client left
	key     uint64 // 0 for none
	watches []uint64
}

// machine is the store.
type machine struct {
	api      API
	interval algorithm.Time // between two checks for leases that have ended
	leases   []*lease       // in the order in which they were granted
	granted  uint64         // leases so far
	revision uint64         // keys so far
	effects  algorithm.Effects
}

// New makes a store that looks for leases that have ended every interval of its own clock.
func New(api API, interval time.Duration) algorithm.Machine {
	return &machine{api: api, interval: algorithm.Time(interval)}
}

// View implements algorithm.Machine: a store has no view.
func (*machine) View() algorithm.View { return algorithm.View{} }

// Step implements algorithm.Machine.
func (s *machine) Step(now algorithm.Time, _ uint64, in algorithm.Input) algorithm.Effects {
	s.effects = algorithm.Effects{Messages: s.effects.Messages[:0], Wake: elector.Never}
	for i := 0; i < len(s.leases); {
		if now >= s.leases[i].expires {
			s.end(s.leases[i])
			continue
		}
		i++
	}
	if in, ok := in.(algorithm.Received); ok {
		if r, ok := in.Message.(Request); ok {
			s.serve(now, in.From, r)
		}
	}
	for _, l := range s.leases {
		s.effects.Wake = min(s.effects.Wake, l.expires)
	}
	return s.effects
}

// serve answers a request. A Reply without a lease says that the lease has ended.
func (s *machine) serve(now algorithm.Time, from algorithm.NodeID, r Request) {
	if r.Op == Grant && r.Lease == 0 {
		s.granted++
		r.Lease = s.granted
		s.leases = append(s.leases, &lease{id: r.Lease, client: from, ttl: r.TTL,
			expires: s.check(now, r.TTL)})
	}
	l := s.lease(r.Lease)
	if l == nil {
		s.send(from, Reply{API: s.api, Op: r.Op, Xid: r.Xid})
		return
	}
	if r.Xid < l.since {
		return // ZooKeeper: SessionMoved, said to a connection that is closed
	}
	if r.Op == KeepAlive || s.api == ZooKeeper {
		l.expires = s.check(now, l.ttl)
	}
	reply := Reply{API: s.api, Op: r.Op, Xid: r.Xid, Lease: l.id}
	switch r.Op {
	case Grant:
		l.since = r.Xid
	case Revoke:
		s.end(l)
	case Create:
		if l.key == 0 {
			s.revision++
			l.key = s.revision
		}
		reply.Created = l.key
	case List:
		reply.Keys = s.keys()
	}
	s.send(from, reply)
	if r.Op == Watch || r.Op == KeepAlive {
		s.watch(l, r)
	}
}

// check is the first check at which a lease that is renewed now has ended.
func (s *machine) check(now algorithm.Time, ttl time.Duration) algorithm.Time {
	return (now.Add(ttl) + s.interval - 1) / s.interval * s.interval
}

// watch replaces what a lease watches. The client hears at once of keys that are gone.
func (s *machine) watch(l *lease, r Request) {
	l.watches = l.watches[:0]
	for _, key := range r.Watches {
		if slices.ContainsFunc(s.leases, func(l *lease) bool { return l.key == key }) {
			l.watches = append(l.watches, key)
		} else {
			s.send(l.client, Event{API: s.api, Deleted: key})
		}
	}
}

// end ends a lease, deletes its key, and tells who watches.
func (s *machine) end(l *lease) {
	s.leases = slices.DeleteFunc(s.leases, func(other *lease) bool { return other == l })
	for _, other := range s.leases {
		if i := slices.Index(other.watches, l.key); i >= 0 {
			other.watches = slices.Delete(other.watches, i, i+1)
			s.send(other.client, Event{API: s.api, Deleted: l.key})
		}
	}
}

func (s *machine) lease(id uint64) *lease {
	for _, l := range s.leases {
		if l.id == id {
			return l
		}
	}
	return nil
}

// keys are all keys, the oldest first.
func (s *machine) keys() (keys []Key) {
	for _, l := range s.leases {
		if l.key != 0 {
			keys = append(keys, Key{Client: l.client, Lease: l.id, Created: l.key})
		}
	}
	slices.SortFunc(keys, func(a, b Key) int { return cmp.Compare(a.Created, b.Created) })
	return keys
}

func (s *machine) send(to algorithm.NodeID, m algorithm.Message) {
	s.effects.Messages = append(s.effects.Messages, algorithm.Envelope{To: to, Message: m})
}
