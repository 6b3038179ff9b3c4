// Package zookeeper is ZooKeeper's recipe for a leader election, as Curator's LeaderLatch
// follows it: each member makes an ephemeral sequential znode, the smallest leads, and each
// other watches the one before it, so that a failure wakes one member and not all. Read:
// ClientCnxn, SessionTrackerImpl, Leader and Learner of ZooKeeper at 53a78e36f, and LeaderLatch
// and ConnectionStateManager of Curator at 88dee99a, both of July 2026.
//
// The client's rules, T the session time-out:
//   - It pings when it has sent nothing for T/3. (The real one does so up to a second earlier, or
//     after 10 s, if a message wakes it then.)
//   - A server that was silent for 2T/3, or that ends the connection, is left: the state is
//     SUSPENDED. A leader stops to lead then (Curator's standard policy): after silence, a
//     third of T before its session can end. A server without a leader ends its connections.
//   - It connects again with its session, and repeats that every T/3, which is what three
//     servers in the connect string give. If the session still lives (RECONNECTED), it reads
//     the children: its znode is where it was, and it leads again by the same one.
//   - If the store says that the session has expired, or nothing is heard for 4T/3, the
//     session is lost: the client opens another, and its new znode is the last in the queue.
//
// T is Timing.Inactivity; the store's tick, at which sessions end, is HeartbeatBroadcast.
// View.Term is the czxid of the leader's znode, the fencing number that ZooKeeper gives.
//
// Children come with their czxid and owner, which a real client reads one by one. The wait of
// up to a second before a client connects again is that of the network here.
//
// It guarantees one leader per czxid, and one at a time as long as an answer takes less than
// T/3, no clock is 1.5 times as fast as another, and no process is paused: a paused leader
// believes until it has looked at its clock, or, if it reads old answers first, until it
// hears that its session has expired. It needs the store: with the store out of reach nobody
// leads, and a member that alone reaches it leads, whomever else it can reach.
package zookeeper

import (
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/member"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/store"
)

// ZooKeeper is the election through ephemeral sequential znodes.
var ZooKeeper = algorithm.Algorithm{
	Name:   "zookeeper",
	Title:  "ZooKeeper recipe",
	Source: "ZooKeeper recipes; Curator LeaderLatch",
	New:    member.Maker(begin),
	Store: store.New(&store.ZooKeeper,
		func(t elector.Timing) time.Duration { return t.HeartbeatBroadcast }),
	OneLeaderPerTerm: true,
	// Curator asks for 60 s; a server with ticks of 2 s gives 20 of them at most.
	Tuned:    algorithm.OnAnyLink(2*time.Second, 20),
	Deviates: "children come with what a client reads of each",
}

// machine is one member's client.
type machine struct {
	store.Client
	connected bool
	heard     algorithm.Time // when the store said something last
}

func begin(m *member.Member) member.Rules {
	return &machine{heard: m.Now, Client: store.Begin(m, &store.ZooKeeper, "smallest znode")}
}

// Input follows the connection. A client waits for a silent one until its own limit, longer than
// the network does, which makes another meanwhile.
func (m *machine) Input(in algorithm.Input) {
	down, _ := in.(elector.LinkDown)
	up, _ := in.(elector.LinkUp)
	switch {
	case m.connected && down.Peer == algorithm.StoreNode && down.Evidence != elector.EvidenceTimeout:
		m.suspend()
	case !m.connected && up.Peer == algorithm.StoreNode:
		m.Call(m.API.Grant)
	default:
		m.Client.Input(in)
	}
}

// suspend leaves a server and asks for another, with the session.
func (m *machine) suspend() {
	m.connected = false
	m.See(elector.Follower, store.Key{}, "SUSPENDED")
	m.Call(m.API.Grant)
}

// Tick is the client's turn when nothing came.
func (m *machine) Tick() algorithm.Time {
	third := m.TTL / 3
	switch {
	case m.Session != 0 && m.Now >= m.heard.Add(4*third):
		m.connected = false
		m.NewSession("LOST")
	case m.connected && m.Now >= m.heard.Add(2*third):
		m.suspend()
	case m.Now < m.Sent.Add(third):
	case m.connected:
		m.KeepAlive()
	default:
		m.Call(m.API.Grant)
	}
	if m.connected {
		return min(m.Sent.Add(third), m.heard.Add(2*third))
	}
	return m.Sent.Add(third)
}

// Receive acts on what a server says. What comes over a connection that was left is none of it.
func (m *machine) Receive(_ int, msg algorithm.Message) {
	if !m.connected && !m.Answered(msg) {
		return
	}
	m.heard = m.Now
	r, _ := msg.(store.Reply)
	if m.connected = !r.Gone; m.connected {
		m.Hear(msg)
	} else {
		m.NewSession("session expired")
	}
}
