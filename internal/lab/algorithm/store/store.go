// Package store is a model of the stores that members ask for a lease, ZooKeeper and etcd, and
// of what their clients have in common, as far as recipes for an election use it.
//
// The store is one machine. Whoever runs it decides where it is and who reaches it; see
// sim.Store. A lease (ZooKeeper: a session) belongs to one client and ends when it was not
// renewed for its TTL, counted on the store's own clock, and then at the next of its checks,
// which come at a fixed interval: ZooKeeper's tick, etcd's 500 ms. A client makes one key with
// its lease (ephemeral and sequential; in etcd, named after the lease). The store numbers the
// keys as it makes them: ZooKeeper's czxid, etcd's create revision. Keys end with their lease.
// Who watches a key gets one Event when it is gone.
//
// A machine that starts on the disk of another is the store with a new leader. It has all that
// was answered, and gives each lease its full TTL again, as ZooKeeper's session tracker and
// etcd's Lessor.Promote do. (etcd adds its election time-out.)
//
// Clients speak over a connection, which keeps order and repeats what is lost. When it breaks,
// they ask again over the next one what has no answer: every request may come twice.
package store

import (
	"cmp"
	"slices"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/member"
)

// A lease of one client, and its key.
type lease struct {
	id      uint64
	client  int // its rank
	ttl     time.Duration
	expires algorithm.Time
	key     uint64 // 0 for none
	watches []uint64
}

// server is the store.
type server struct {
	*member.Member
	api      *API
	interval algorithm.Time // between two checks for leases that have ended
	leases   []*lease       // in the order in which they were granted
	granted  uint64         // leases so far
	revision uint64         // keys so far
}

// New makes a store that looks for leases that have ended every interval of its own clock.
func New(
	api *API, interval func(elector.Timing) time.Duration,
) func(algorithm.Config) algorithm.Machine {
	return member.Maker(func(m *member.Member) member.Rules {
		s := &server{Member: m, api: api, interval: algorithm.Time(interval(m.Timing))}
		if old, ok := m.Disk.(*server); ok {
			s.leases, s.granted, s.revision = old.leases, old.granted, old.revision
			for _, l := range s.leases {
				l.expires, l.watches = s.check(l.ttl), nil
			}
		}
		m.Save(s)
		m.Become(elector.Dormant, member.Nobody, "")
		return s
	})
}

func (s *server) Tick() algorithm.Time {
	wake := elector.Never
	for _, l := range slices.Clone(s.leases) {
		if s.Now >= l.expires {
			s.end(l)
		} else {
			wake = min(wake, l.expires)
		}
	}
	return wake
}

func (s *server) Receive(from int, msg algorithm.Message) {
	s.Tick()
	r, _ := msg.(Request)
	if r.Kind == s.api.Grant && r.Lease == 0 {
		s.granted++
		r.Lease = s.granted
		s.leases = append(s.leases,
			&lease{id: r.Lease, client: from, ttl: r.TTL, expires: s.check(r.TTL)})
	}
	reply := Reply{Kind: r.Kind + "Response", Xid: r.Xid, Lease: r.Lease}
	i := slices.IndexFunc(s.leases, func(l *lease) bool { return l.id == r.Lease })
	if i < 0 {
		reply.Gone = true
		s.Send(from, reply)
		return
	}
	l := s.leases[i]
	if r.Kind == s.api.KeepAlive || s.api.AllRenew {
		l.expires = s.check(l.ttl)
	}
	switch r.Kind {
	case s.api.Revoke:
		s.end(l)
	case s.api.Create:
		if l.key == 0 {
			s.revision++
			l.key = s.revision
		}
		reply.Created = l.key
	case s.api.List:
		reply.Keys = s.keys()
	}
	s.Send(from, reply)
	if r.Kind == s.api.Watch {
		s.watch(l, r.Watches)
	}
}

// check is the first check at which a lease that is renewed now has ended.
func (s *server) check(ttl time.Duration) algorithm.Time {
	return (s.Now.Add(ttl) + s.interval - 1) / s.interval * s.interval
}

// watch replaces what a lease watches. The client hears at once of keys that are gone.
func (s *server) watch(l *lease, keys []uint64) {
	l.watches = l.watches[:0]
	for _, key := range keys {
		if slices.ContainsFunc(s.leases, func(l *lease) bool { return l.key == key }) {
			l.watches = append(l.watches, key)
		} else {
			s.Send(l.client, Event{Kind: s.api.Deleted, Key: key})
		}
	}
}

// end ends a lease, deletes its key, and tells who watches.
func (s *server) end(l *lease) {
	s.leases = slices.DeleteFunc(s.leases, func(other *lease) bool { return other == l })
	for _, other := range s.leases {
		if i := slices.Index(other.watches, l.key); i >= 0 {
			other.watches = slices.Delete(other.watches, i, i+1)
			s.Send(other.client, Event{Kind: s.api.Deleted, Key: l.key})
		}
	}
}

// keys are all keys, the oldest first.
func (s *server) keys() (keys []Key) {
	for _, l := range s.leases {
		if l.key != 0 {
			keys = append(keys, Key{s.Name(l.client), l.key})
		}
	}
	slices.SortFunc(keys, func(a, b Key) int { return cmp.Compare(a.Created, b.Created) })
	return keys
}
