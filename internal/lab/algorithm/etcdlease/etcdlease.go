// Package etcdlease is the election of etcd's client library, clientv3/concurrency: Election
// on a Session, which is a lease that the client keeps alive.
//
// A member puts a key under its lease (Txn: if it is not there). The key with the lowest
// create revision leads; each other waits for the deletion of the one before it. The
// client's rules:
//   - Each answer to a keep-alive puts the next one off by a third of the TTL, and the
//     deadline by all of it, counted from when the answer arrives. Keep-alives that are due
//     are sent every 500 ms until one is answered.
//   - Every second the client looks whether the deadline has passed. If so, or if an answer
//     says that the lease is gone, the Session is done: a leader stops to lead, and a new
//     Session campaigns anew.
//
// So a leader that loses contact believes for a TTL after the last answer and up to a second
// more, while the store counts from the keep-alive before that answer, and looks every
// 500 ms: two leaders at a time are possible by the delay of an answer and what the client
// looks later than the store. Clocks that run at different rates add their difference over a
// TTL. A paused leader believes until its client runs; if it then reads an old answer first,
// until its next keep-alive is answered: up to a third of the TTL more. Writes are to be
// fenced by the create revision, which is View.Term; it rises from leader to leader.
//
// TTL is Timing.Inactivity. A lab's TTL may be below etcd's 5 s; so the 500 ms are a tenth
// of the TTL here, and the second two tenths. Other requests are repeated like keep-alives,
// as TCP would.
//
// It guarantees one leader per create revision. It needs the store: a member that alone
// reaches it leads, whomever else it can reach.
package etcdlease

import (
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/store"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/store/queue"
)

// EtcdLease is the election on a session of etcd.
var EtcdLease = algorithm.Algorithm{
	Name:   "etcd-lease",
	Title:  "etcd election",
	Source: "etcd clientv3/concurrency: Election, Session",
	New:    newMachine,
	Store: func(cfg algorithm.Config) algorithm.Machine {
		return store.New(store.Etcd, cfg.Elector.Timing.Inactivity()/10)
	},
	OneLeaderPerTerm: true,
}

// machine is one member's client.
type machine struct {
	queue.Client
	looks   algorithm.Time // how often the client looks whether a keep-alive is due
	booted  algorithm.Time // it looks at multiples of that from here on
	renewed algorithm.Time // when an answer last put off the deadline
	asked   algorithm.Time // when it last sent a keep-alive
}

func newMachine(cfg algorithm.Config) algorithm.Machine {
	ttl := cfg.Elector.Timing.Inactivity()
	return &machine{looks: max(algorithm.Time(ttl)/10, 1),
		Client: queue.Client{Self: cfg.Self(), API: store.Etcd, TTL: ttl}}
}

// Step implements algorithm.Machine.
func (m *machine) Step(now algorithm.Time, entropy uint64, in algorithm.Input) algorithm.Effects {
	m.Clear()
	if _, ok := in.(algorithm.Start); ok {
		m.Boot(entropy)
		m.booted = now
		m.NewSession(now, "start")
	}
	if m.View().Role == elector.Dormant {
		return m.Effects
	}
	switch in := in.(type) {
	case elector.Tick:
		m.tick(now)
	case algorithm.Received:
		m.receive(now, in.Message)
	case elector.Stop:
		m.Call(now, store.Revoke)
		m.See(elector.Dormant, store.Key{}, "session closed")
		return m.Effects
	}
	m.Effects.Wake = min(m.callDue(), m.keepAliveDue(), m.deadline())
	return m.Effects
}

// look is the first moment from t on at which the client looks. It looks at multiples of every
// after booted.
func (m *machine) look(t, every algorithm.Time) algorithm.Time {
	return m.booted + (t-m.booted+every-1)/every*every
}

func (m *machine) keepAliveDue() algorithm.Time {
	if m.Lease == 0 {
		return elector.Never
	}
	return m.look(max(m.renewed.Add(m.TTL/3), m.asked+1), m.looks)
}

// deadline is when the client finds that it waited too long: the lease may have ended.
func (m *machine) deadline() algorithm.Time {
	if m.Lease == 0 {
		return elector.Never
	}
	return m.look(m.renewed.Add(m.TTL)+1, 2*m.looks)
}

func (m *machine) callDue() algorithm.Time {
	if m.Pending.Op == 0 {
		return elector.Never
	}
	return m.Sent + m.looks
}

func (m *machine) tick(now algorithm.Time) {
	switch {
	case now >= m.deadline():
		m.NewSession(now, "no keep-alive was answered for a TTL")
	case now >= m.callDue():
		m.Send(now, m.Pending)
	case now >= m.keepAliveDue():
		m.keepAlive(now)
	}
}

func (m *machine) keepAlive(now algorithm.Time) {
	m.asked = now
	m.KeepAlive(now)
}

func (m *machine) receive(now algorithm.Time, message algorithm.Message) {
	if !m.Counts(message) {
		return
	}
	switch r := message.(type) {
	case store.Event:
		m.Deleted(now)
	case store.Reply:
		if r.Lease == 0 {
			m.NewSession(now, "the lease is gone")
			return
		}
		granted := r.Op == store.Grant && m.Lease == 0
		if granted || r.Op == store.KeepAlive {
			m.renewed = now
		}
		m.Answered(now, r, "lowest create revision")
		if granted {
			m.keepAlive(now)
		}
	}
}
