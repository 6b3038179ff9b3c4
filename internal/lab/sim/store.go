package sim

import (
	"time"

	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
)

// Store says where the store of an algorithm is, and how long it is without a leader.
//
// Unless it is Apart, each voter's host has a replica of it, which is gone while the host is (a
// silent crash), whatever the voter's process does. Two replicas hear each other while both ways
// between their hosts are open. One of them leads the store as long as it hears a majority,
// itself included. If it does not, there is no store for an election's time; then there is a new
// leader, as soon as a replica hears a majority in which nobody has seen more of the store than
// it has itself. Who does not hear the leader does not disturb it: etcd has PreVote, and in
// ZooKeeper nobody follows who has a leader.
//
// A client asks any replica that the leader hears: its own, or one whose host it hears. The
// message goes on to the leader, unless it is of a kind that any replica answers alone. What the
// replicas agree on among themselves takes no time here.
type Store struct {
	// Apart puts the store on machines of its own: each node has a link to it, by the name
	// algorithm.StoreNode, and it fails only by FailStore.
	Apart bool
	// Election is the shortest time without a store after it has lost its leader, and half of
	// the longest. 0 means 1 s, which is etcd's default.
	Election time.Duration
}

// ensemble is the store. Its node is the process that leads it: none runs while none does.
type ensemble struct {
	*node
	leader   *node // on whose host that is; the store's own node if it is Apart
	electing bool
	settling bool
	down     time.Duration // until then there is no leader
	wrote    int           // requests and leaders so far
}

// replica is what a node's host has of the store.
type replica struct {
	gone  bool
	hears bool  // the leader, or is it
	has   int   // how much of what was written
	via   *node // whose replica the client asks; nil if it can ask none
}

// placeStore gives the store its first leader.
func (s *Sim) placeStore() {
	s.store = ensemble{node: s.byName[algorithm.StoreNode], down: longAgo}
	if s.store.node != nil {
		s.electStore()
	}
}

// FailStore takes the leader from the store, which elects the next one in its time, but not within
// d. Without a store nothing happens.
func (s *Sim) FailStore(d time.Duration) error {
	if s.store.node != nil {
		s.store.down = s.now + d
		s.loseStore()
		s.queue.at(s.store.down, s.settle)
	}
	return s.err
}

// loseStore ends the process that leads the store, and with it the clients' connections.
func (s *Sim) loseStore() {
	s.store.leader = nil
	if s.store.running() {
		_ = s.Crash(s.store.id, Crash{Unsynced: UnsyncedKept}) // s.err has it
	}
}

// settleStore looks who leads the store and who reaches it, after all that happens now.
func (s *Sim) settleStore() {
	if e := &s.store; e.node != nil && !e.settling {
		e.settling = true
		s.queue.at(s.now, s.settle)
	}
}

func (s *Sim) settle() {
	e := &s.store
	e.settling = false
	for _, n := range s.nodes {
		if n.replica.hears {
			n.replica.has = e.wrote
		}
	}
	if e.leader != nil && e.leader != e.node && !s.canLead(e.leader) {
		s.loseStore()
	}
	if e.leader == nil && !e.electing && len(s.candidates()) > 0 {
		e.electing = true
		s.queue.at(s.now+s.cfg.Store.Election+s.upTo(s.cfg.Store.Election), s.electStore)
	}
	s.routeStore()
}

// electStore chooses a leader if one can lead; if none can, settle tries again.
func (s *Sim) electStore() {
	e := &s.store
	e.electing = false
	can := s.candidates()
	if len(can) == 0 {
		return
	}
	e.leader = can[s.upTo(time.Duration(len(can)-1))]
	e.wrote++
	s.routeStore()
	if e.boots > 0 { // the first process starts with those of the members
		_ = s.Restart(e.id) // s.err has it
	}
}

// candidates are the nodes on whose hosts the store's leader can be.
func (s *Sim) candidates() (can []*node) {
	for _, n := range s.nodes {
		if apart := s.cfg.Store.Apart; s.now >= s.store.down && (n == s.store.node) == apart &&
			(apart || s.canLead(n)) {
			can = append(can, n)
		}
	}
	return can
}

// canLead reports whether a node's replica hears a majority that has seen no more than it has.
func (s *Sim) canLead(n *node) bool {
	votes := 0
	for _, v := range s.nodes {
		if v != s.store.node && !v.replica.gone && hear(n, v) && v.replica.has <= n.replica.has {
			votes++
		}
	}
	return !n.replica.gone && votes > len(n.Elector.Voters)/2
}

// hear reports whether two hosts hear each other.
func hear(a, b *node) bool { return a == b || a.link(b).open() }

// routeStore finds for each client the replica to ask, and cuts the ways of who has none.
func (s *Sim) routeStore() {
	e := &s.store
	for _, n := range s.nodes {
		n.replica.hears = n != e.node && e.leader != nil && e.leader != e.node &&
			!n.replica.gone && hear(n, e.leader)
	}
	if e.leader == nil || e.leader == e.node {
		return
	}
	for _, n := range s.nodes {
		if n == e.node {
			continue
		}
		n.replica.via = nil
		for _, v := range append([]*node{n}, s.nodes...) {
			if n.replica.via == nil && v.replica.hears && hear(n, v) {
				n.replica.via = v
			}
		}
		s.setCut(n.link(e.node), 0, n.replica.via == nil)
		s.setCut(n.link(e.node), 1, n.replica.via == nil)
	}
}

// leastRTO is the shortest time, beside the round trip, after which TCP sends again what was
// lost, as Linux has it. It doubles each time.
const leastRTO = 200 * time.Millisecond

// stream is one direction of a connection to the store.
type stream struct {
	epoch    uint64 // of the connection
	messages []*segment
}

// segment is a message that was not handed over yet, in the order of sending.
type segment struct {
	happening
	came bool
}

// carry brings a message to the store or from there as TCP does: in order, and what is lost or
// finds the way cut comes later, as long as the connection lives.
func (s *Sim) carry(from, to *node, way *happening) {
	l, i, m, rto := way.link, way.end, &segment{happening: *way}, leastRTO
	d := &l.dirs[i]
	if d.stream.epoch != m.epoch {
		d.stream = stream{epoch: m.epoch}
	}
	d.stream.messages = append(d.stream.messages, m)
	var send func()
	again := func() { rto *= 2; s.queue.at(s.now+rto/2, send) }
	send = func() {
		switch {
		case l.epoch != m.epoch || !l.ends[1-i].up:
			return
		case d.cut:
			again()
			return
		}
		d.last = max(s.now+s.travel(from, to, m.in.(algorithm.Received).Message), d.last)
		s.queue.at(d.last, func() {
			if d.cut {
				again()
			} else if l.epoch == m.epoch && l.ends[i].up {
				m.came = true
				s.hand(to, &d.stream)
			}
		})
	}
	send()
}

// hand gives a process what has come in order.
func (s *Sim) hand(to *node, of *stream) {
	for epoch := of.epoch; of.epoch == epoch && len(of.messages) > 0 && of.messages[0].came; {
		m := of.messages[0]
		of.messages = of.messages[1:]
		s.observeMessage(EventDelivered, to.id, m.node.id, &m.happening)
		s.hear(to, m.in)
	}
}

// travel draws how long a message takes between a client and the store, or only the replica that
// answers alone.
func (s *Sim) travel(from, to *node, m algorithm.Message) time.Duration {
	e := &s.store
	far := e.leader
	local, is := m.(interface{ Local() bool })
	switch {
	case e.leader == e.node:
		return s.pass(from, to)
	case e.leader == nil:
		return 0 // its process is gone, and the connection will be
	case from == e.node:
		if is && local.Local() {
			far = to.replica.via
		}
		return s.pass(far, to.replica.via) + s.pass(to.replica.via, to)
	case is && local.Local():
		far = from.replica.via
	}
	e.wrote++
	return s.pass(from, from.replica.via) + s.pass(from.replica.via, far)
}

// pass draws how long a message takes over the TCP connection of two hosts.
func (s *Sim) pass(from, to *node) (took time.Duration) {
	if from == to {
		return 0
	}
	l := from.link(to)
	d := &l.dirs[l.side(to)]
	rto := leastRTO + 2*(d.Delay+d.Jitter)
	for ; s.chance(d.LossPPM) && took < time.Hour; rto *= 2 {
		took += rto
	}
	took += d.Delay + s.upTo(d.Jitter)
	if d.Tail > 0 {
		took += time.Duration(s.network.ExpFloat64() * float64(d.Tail))
	}
	return took
}
