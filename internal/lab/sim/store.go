package sim

import (
	"slices"
	"time"

	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
)

// Store says where the store of an algorithm is, and for how long it fails.
//
// Unless it is Apart, each voter's host has a replica of it, which is gone while the host is (a
// silent crash), whatever the voter's process does. Two replicas hear each other while both ways
// between their hosts are open. One of them leads the store as long as it hears a majority,
// itself included. If it does not, there is no store for an election's time; then there is a new
// leader, as soon as a replica hears a majority in which nobody has seen more of the store than
// it has itself. Who does not hear the leader does not disturb it: etcd has PreVote, and in
// ZooKeeper nobody follows who has a leader. A client asks any replica that the leader hears: its
// own, or one whose host it hears. The message goes on to the leader, and a request takes a
// round to a majority there, unless it is of a kind that any replica answers.
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
	stopped  bool
	settling bool
	wrote    int // requests and leaders so far
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
	s.store.node = s.byName[algorithm.StoreNode]
	if can := s.candidates(); s.store.node != nil {
		s.store.leader = can[s.upTo(time.Duration(len(can)-1))]
		s.routeStore()
	}
}

// FailStore ends the leadership of the store. It elects the next leader after its time or, if it
// is to stop, not before FixStore. An algorithm without a store does not notice.
func (s *Sim) FailStore(stop bool) error {
	if s.store.stopped = stop; s.store.node != nil {
		s.loseStore()
		s.settleStore()
	}
	return s.err
}

// FixStore ends what FailStore began.
func (s *Sim) FixStore() error {
	s.store.stopped = false
	s.settleStore()
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
		s.queue.at(s.now, func() {
			e.settling = false
			s.settle()
		})
	}
}

func (s *Sim) settle() {
	e := &s.store
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

func (s *Sim) electStore() {
	e := &s.store
	e.electing = false
	can := s.candidates()
	if len(can) == 0 {
		return // settle tries again when something changes
	}
	e.leader = can[s.upTo(time.Duration(len(can)-1))]
	e.wrote++
	_ = s.Restart(e.id) // s.err has it
	s.routeStore()
}

// candidates are the nodes whose replica can lead.
func (s *Sim) candidates() (can []*node) {
	for _, n := range s.nodes {
		if !s.store.stopped && (n == s.store.node) == s.cfg.Store.Apart &&
			(s.cfg.Store.Apart || s.canLead(n)) {
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
	return !n.replica.gone && votes >= s.majority()
}

func (s *Sim) majority() int { return len(s.nodes[0].Elector.Voters)/2 + 1 }

// hear reports whether two hosts hear each other.
func hear(a, b *node) bool { return a == b || a.link(b).open() }

// routeStore finds for each client the replica to ask, and cuts the ways of who has none.
func (s *Sim) routeStore() {
	e := &s.store
	if e.leader == e.node {
		return
	}
	for _, n := range s.nodes {
		r := &n.replica
		r.hears = n != e.node && !r.gone && e.leader != nil && hear(n, e.leader)
	}
	for _, n := range s.nodes {
		if n == e.node || e.leader == nil {
			continue
		}
		r := &n.replica
		r.via = nil
		for _, v := range append([]*node{n}, s.nodes...) {
			if v.replica.hears && hear(n, v) {
				r.via = v
				break
			}
		}
		s.setCut(n.link(e.node), 0, r.via == nil)
		s.setCut(n.link(e.node), 1, r.via == nil)
	}
}

// stream is one direction of a connection to the store.
type stream struct {
	epoch    uint64     // of the connection
	segments []*segment // not delivered yet, in the order of sending
}

// segment is a message in a stream.
type segment struct {
	happening
	came bool
}

// leastRTO is the shortest time, beside the round trip, after which TCP sends again what was
// lost, as Linux has it. It doubles each time.
const leastRTO = 200 * time.Millisecond

// carry brings a message to the store or from there as TCP does: in order, and what is lost or
// finds the way cut comes later, as long as the connection lives.
func (s *Sim) carry(from, to *node, way *happening) {
	l, i, epoch := way.link, way.end, way.epoch
	d, sent := &l.dirs[i], &segment{happening: *way}
	if d.stream.epoch != epoch {
		d.stream = stream{epoch: epoch}
	}
	d.stream.segments = append(d.stream.segments, sent)
	var attempt func(rto time.Duration)
	attempt = func(rto time.Duration) {
		switch {
		case l.epoch != epoch || !l.ends[1-i].up:
		case d.cut:
			s.queue.at(s.now+rto, func() { attempt(2 * rto) })
		default:
			d.last = max(s.now+s.travel(from, to, sent.in.(algorithm.Received).Message), d.last)
			s.queue.at(d.last, func() {
				if d.cut {
					attempt(2 * rto)
				} else if l.epoch == epoch && l.ends[i].up {
					sent.came = true
					s.hand(to, d)
				}
			})
		}
	}
	attempt(leastRTO)
}

// hand gives a process what has come in order.
func (s *Sim) hand(to *node, d *direction) {
	for st := d.stream; len(d.stream.segments) > 0 && d.stream.epoch == st.epoch; {
		first := d.stream.segments[0]
		if !first.came {
			return
		}
		d.stream.segments = d.stream.segments[1:]
		if to == s.store.node {
			s.store.wrote++
		}
		s.observeMessage(EventDelivered, to.id, first.node.id, &first.happening)
		s.hear(to, first.in)
	}
}

// local is a message that a replica answers, or the answer.
type local interface{ Local() bool }

// travel draws how long a message takes between a client and the store.
func (s *Sim) travel(from, to *node, m algorithm.Message) time.Duration {
	e := &s.store
	l, _ := m.(local)
	switch alone := l != nil && l.Local(); {
	case e.leader == e.node:
		return s.pass(from, to)
	case e.leader == nil:
		return 0 // its process is gone, and the connection will be
	case alone && from == e.node:
		return s.pass(to.replica.via, to)
	case alone:
		return s.pass(from, from.replica.via)
	case from == e.node:
		return s.pass(e.leader, to.replica.via) + s.pass(to.replica.via, to)
	}
	var rounds []time.Duration // to a majority, which a request takes, too
	for _, n := range s.nodes {
		if n.replica.hears {
			rounds = append(rounds, s.pass(e.leader, n)+s.pass(n, e.leader))
		}
	}
	slices.Sort(rounds)
	return s.pass(from, from.replica.via) + s.pass(from.replica.via, e.leader) +
		rounds[s.majority()-1]
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
