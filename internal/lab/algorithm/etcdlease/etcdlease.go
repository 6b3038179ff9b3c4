// Package etcdlease is the election of etcd's client library, clientv3/concurrency: Election
// on a Session, which is a lease that the client keeps alive. Read: client/v3/lease.go,
// concurrency/{election,session}.go and server/lease/lessor.go of etcd v3.8.0-alpha.0 (c34dc7ee0).
//
// A member puts a key under its lease (Txn: if it is not there). The key with the lowest create
// revision leads; each other waits for the deletion of the one before it. The client's rules:
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
// TTL is Timing.Inactivity; etcd's default is 60 s, and its least 5 s. For a shorter one the
// 500 ms are a tenth of the TTL here, and the second two tenths.
//
// It guarantees one leader per create revision. It needs the store: a member that alone
// reaches it leads, whomever else it can reach.
package etcdlease

import (
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/member"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/store"
)

// EtcdLease is the election on a session of etcd.
var EtcdLease = algorithm.Algorithm{
	Name:             "etcd-lease",
	Title:            "etcd election",
	Source:           "etcd clientv3/concurrency: Election, Session",
	New:              member.Maker(begin),
	Store:            store.New(&store.Etcd, looks),
	OneLeaderPerTerm: true,
	Tuned:            algorithm.OnAnyLink(2*time.Second, 30), // a TTL of 60 s
	Deviates:         "below a TTL of 5 s the clients look at their clocks more often",
}

// looks is how often client and store look at their clocks.
func looks(t elector.Timing) time.Duration {
	return max(min(t.Inactivity()/10, 500*time.Millisecond), 1)
}

// machine is one member's client.
type machine struct {
	store.Client
	looks   algorithm.Time // how often the client looks whether a keep-alive is due
	booted  algorithm.Time // it looks at multiples of that from here on
	renewed algorithm.Time // when an answer last put off the deadline
	asked   algorithm.Time // when it last sent a keep-alive
}

func begin(m *member.Member) member.Rules {
	return &machine{looks: algorithm.Time(looks(m.Timing)), booted: m.Now,
		Client: store.Begin(m, &store.Etcd, "lowest create revision")}
}

func (m *machine) Tick() algorithm.Time {
	if m.Session != 0 && m.Now >= m.deadline() {
		m.NewSession("no keep-alive was answered for a TTL")
	}
	if m.Session == 0 {
		return elector.Never
	}
	if m.Now >= m.keepAliveDue() {
		m.keepAlive()
	}
	return min(m.keepAliveDue(), m.deadline())
}

// look is the first moment from t on at which the client looks. It looks at multiples of every
// after booted.
func (m *machine) look(t, every algorithm.Time) algorithm.Time {
	return m.booted + (t-m.booted+every-1)/every*every
}

func (m *machine) keepAliveDue() algorithm.Time {
	return m.look(max(m.renewed.Add(m.TTL/3), m.asked+1), m.looks)
}

// deadline is when the client finds that it waited too long: the lease may have ended.
func (m *machine) deadline() algorithm.Time { return m.look(m.renewed.Add(m.TTL)+1, 2*m.looks) }

func (m *machine) keepAlive() {
	m.asked = m.Now
	m.KeepAlive()
}

func (m *machine) Receive(_ int, msg algorithm.Message) {
	r, _ := msg.(store.Reply)
	granted := m.Session == 0 && m.Answered(msg)
	switch {
	case m.Session != 0 && r.Lease == m.Session && r.Gone:
		m.NewSession("the lease is gone")
		return
	case granted, m.Session != 0 && r.Lease == m.Session && r.Xid == 0:
		m.renewed = m.Now
	}
	if m.Hear(msg); granted {
		m.keepAlive()
	}
}
