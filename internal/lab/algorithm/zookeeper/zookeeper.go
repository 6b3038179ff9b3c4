// Package zookeeper is ZooKeeper's recipe for a leader election, as Curator's LeaderLatch
// follows it: each member makes an ephemeral sequential znode, the smallest leads, and each
// other watches the one before it, so that a failure wakes one member and not all.
//
// The client's rules, T the session time-out:
//   - It pings when it has sent nothing for T/3. (The real one does so a second earlier if
//     T/3 is above a second.)
//   - A server that was silent for 2T/3 is left: the state is SUSPENDED. A leader stops to
//     lead then (Curator's standard policy), a third of T before its session can end.
//   - It connects again with its session, and repeats that every T/3, which is what three
//     servers in the connect string give. If the session still lives (RECONNECTED), it reads
//     the children: its znode is where it was, and it leads again by the same one.
//   - If the store says that the session has expired, or nothing is heard for 4T/3, the
//     session is lost: the client opens another, and its new znode is the last in the queue.
//
// T is Timing.Inactivity; the store's tick, at which sessions end, is HeartbeatBroadcast.
// View.Term is the czxid of the leader's znode, the fencing number that ZooKeeper gives.
//
// Children come with their czxid and owner, which a real client reads one by one. A request
// without an answer is repeated in place of the ping, as TCP would.
//
// It guarantees one leader per czxid, and one at a time as long as an answer takes less than
// T/3, no clock is 1.5 times as fast as another, and no process is paused: a paused leader
// believes until it has looked at its clock, or, if it reads old answers first, until it
// hears that its session has expired. It needs the store: with the store out of reach nobody
// leads, and a member that alone reaches it leads, whomever else it can reach.
package zookeeper

import (
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/store"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/store/queue"
)

// ZooKeeper is the election through ephemeral sequential znodes.
var ZooKeeper = algorithm.Algorithm{
	Name:   "zookeeper",
	Title:  "ZooKeeper recipe",
	Source: "ZooKeeper recipes; Curator LeaderLatch",
	New:    newMachine,
	Store: func(cfg algorithm.Config) algorithm.Machine {
		return store.New(store.ZooKeeper, cfg.Elector.Timing.HeartbeatBroadcast)
	},
	OneLeaderPerTerm: true,
}

// machine is one member's client.
type machine struct {
	queue.Client
	connected bool
	heard     algorithm.Time // when the store said something last
}

func newMachine(cfg algorithm.Config) algorithm.Machine {
	return &machine{Client: queue.Client{Self: cfg.Self(), API: store.ZooKeeper,
		TTL: cfg.Elector.Timing.Inactivity()}}
}

// Step implements algorithm.Machine.
func (m *machine) Step(now algorithm.Time, entropy uint64, in algorithm.Input) algorithm.Effects {
	m.Clear()
	if _, ok := in.(algorithm.Start); ok {
		m.Boot(entropy)
		m.heard = now
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
		m.See(elector.Dormant, store.Key{}, "closed")
		return m.Effects
	}
	m.Effects.Wake = m.Sent.Add(m.TTL / 3)
	if m.connected {
		m.Effects.Wake = min(m.Effects.Wake, m.heard.Add(m.TTL*2/3))
	}
	return m.Effects
}

// tick is the client's turn when nothing came.
func (m *machine) tick(now algorithm.Time) {
	if m.Lease != 0 && now >= m.heard.Add(m.TTL*4/3) {
		m.lose(now, "LOST")
		return
	}
	if m.connected && now >= m.heard.Add(m.TTL*2/3) {
		m.connected = false
		m.See(elector.Follower, store.Key{}, "SUSPENDED")
		m.Connect(now)
		return
	}
	switch {
	case now < m.Sent.Add(m.TTL/3):
	case !m.connected:
		m.Connect(now)
	case m.Pending.Op != 0:
		m.Send(now, m.Pending)
	default:
		m.KeepAlive(now)
	}
}

// lose asks for a new session in place of one that has ended, or that the client gives up.
func (m *machine) lose(now algorithm.Time, why string) {
	m.connected = false
	m.NewSession(now, why)
}

func (m *machine) receive(now algorithm.Time, message algorithm.Message) {
	_, event := message.(store.Event)
	if !m.Counts(message) || event && !m.connected {
		return
	}
	m.heard = now
	switch r := message.(type) {
	case store.Event:
		m.Deleted(now)
	case store.Reply:
		if r.Lease == 0 {
			m.lose(now, "session expired")
			return
		}
		m.connected = true
		m.Answered(now, r, "smallest znode")
	}
}
