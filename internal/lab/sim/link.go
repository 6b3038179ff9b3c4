package sim

import (
	"slices"
	"time"

	"github.com/bmqelect/bmqelect/elector"
)

// link is what connects two nodes: at most one virtual TCP connection at a time.
// Index i of its arrays belongs to nodes[i].
type link struct {
	nodes   [2]*node
	ends    [2]end
	dirs    [2]direction // what travels toward nodes[i]
	epoch   uint64       // numbers the connections
	dialing bool         // a connection is about to be made
}

// end is a connection as one process sees it.
type end struct {
	up        bool
	silent    bool          // hears nothing, whatever the other end does
	quietFrom time.Duration // since when
	eof       bool          // the newest connection ended with FIN

	// What this process knows of the other one: the newest boot that it had a link to,
	// the disk of that boot, and whether that process was proven dead.
	knownBoot     int
	knownIdentity int
	refused       bool // a dial proved it dead; the process is about to hear so
	proven        bool
}

// direction is one way of a link.
type direction struct {
	Faults
	cut    bool          // what is sent or arrives here is lost
	stream stream        // to the store or from there
	last   time.Duration // when the newest ordered arrival is due: TCP keeps order
}

// side is the index of n's end.
func (l *link) side(n *node) int {
	if l.nodes[0] == n {
		return 0
	}
	return 1
}

// open reports whether packets pass both ways.
func (l *link) open() bool { return !l.dirs[0].cut && !l.dirs[1].cut }

// connectable reports whether a dial would succeed and is needed.
func (l *link) connectable() bool {
	return l.open() && l.nodes[0].awake() && l.nodes[1].awake() && !(l.ends[0].up && l.ends[1].up)
}

// refresh arms what follows from the state of a link after it changed: the read
// deadline of an end that hears nothing, a dial.
func (s *Sim) refresh(l *link) {
	for i := range l.ends {
		s.armReadDeadline(l, i)
	}
	if l.connectable() && !l.dialing {
		l.dialing = true
		s.queue.at(s.now+s.upTo(s.cfg.Redial), func() { s.dial(l) })
	}
}

// armReadDeadline lets end i give its connection up after LinkTimeout if it has just
// become silent: the way to it is cut, or nobody talks at the other end. A living
// process says goodbye, which may get through.
func (s *Sim) armReadDeadline(l *link, i int) {
	e, other, epoch := &l.ends[i], 1-i, l.epoch
	was := e.silent
	e.silent = e.up && (l.dirs[i].cut || !l.ends[other].up || !l.nodes[other].awake())
	if !e.silent || was {
		return
	}
	e.quietFrom = s.now
	s.queue.at(s.now+s.cfg.LinkTimeout, func() {
		heard := !e.silent || e.quietFrom+s.cfg.LinkTimeout > s.now
		if l.epoch != epoch || heard || !l.nodes[i].awake() {
			return
		}
		s.sendClose(l, other, elector.EvidenceGoodbye)
		s.lose(l, i, elector.EvidenceTimeout)
		s.refresh(l)
	})
}

// lose tells the process at end i that its connection is gone.
func (s *Sim) lose(l *link, i int, why elector.Evidence) {
	e, n, peer := &l.ends[i], l.nodes[i], l.nodes[1-i]
	if !e.up {
		return
	}
	e.up, e.silent, e.eof = false, false, why == elector.EvidenceEOF
	s.observe(Event{Kind: EventLinkDown, Node: n.id, Peer: peer.id, Detail: why})
	s.hear(n, elector.LinkDown{Peer: peer.id, Evidence: why})
}

// sendClose tells end i how its connection ended, after everything that was sent to it
// before.
func (s *Sim) sendClose(l *link, i int, why elector.Evidence) {
	d, e, epoch := &l.dirs[i], &l.ends[i], l.epoch
	if !e.up || d.cut {
		return
	}
	d.last = max(s.now+d.Delay, d.last)
	s.queue.at(d.last, func() {
		if l.epoch == epoch && e.up && !d.cut {
			s.lose(l, i, why)
			s.probe(l, i)
			s.refresh(l)
		}
	})
}

// probe dials a peer whose connection ended with FIN. A refusal proves it dead; the
// proof may take its time, and the peer may run again by then, but this end has no
// link to the new process yet.
func (s *Sim) probe(l *link, i int) {
	e, n, peer := &l.ends[i], l.nodes[i], l.nodes[1-i]
	if !e.eof || e.proven || !n.awake() {
		return
	}
	boot, roundTrip := e.knownBoot, l.dirs[0].Delay+l.dirs[1].Delay
	s.queue.at(s.now+roundTrip, func() {
		known := e.refused || e.proven || e.knownBoot != boot
		if e.up || !e.eof || known || peer.running() || !l.open() || !n.awake() {
			return
		}
		e.refused = true
		prove := func() {
			if e.refused && !e.proven && e.knownBoot == boot && n.running() {
				s.prove(l, i, elector.ProofRefusedAfterEOF)
			}
		}
		if s.cfg.ProofMax == 0 {
			prove()
			return
		}
		s.queue.at(s.now+s.upTo(s.cfg.ProofMax), prove)
	})
}

func (s *Sim) prove(l *link, i int, p elector.Proof) {
	n, peer := l.nodes[i], l.nodes[1-i]
	l.ends[i].proven = true
	s.observe(Event{Kind: EventDied, Node: n.id, Peer: peer.id, Detail: p})
	s.hear(n, elector.Died{Peer: peer.id, Proof: p})
}

// dial makes a connection. The accepting end has it at once, the other when the
// handshake's answer arrives.
func (s *Sim) dial(l *link) {
	if !l.connectable() {
		l.dialing = false
		return
	}
	s.lose(l, 0, elector.EvidenceReset) // a half-open connection is superseded
	s.lose(l, 1, elector.EvidenceReset)
	l.epoch++
	dialer := int(s.network.Uint64N(2))
	d, n := &l.dirs[dialer], l.nodes[dialer]
	boot := n.boots
	d.last = max(s.now+d.Delay, d.last)
	s.queue.at(d.last, func() {
		l.dialing = false
		if !d.cut && n.awake() && n.boots == boot && l.ends[1-dialer].up {
			s.connected(l, dialer)
		}
		s.refresh(l)
	})
	s.connected(l, 1-dialer)
	s.refresh(l)
}

// connected gives end i its connection. Before that, the end hears the proof that the
// process which it knew is gone, if the connection to that process ended with FIN and
// another process runs on the same disk now.
func (s *Sim) connected(l *link, i int) {
	e, n, peer := &l.ends[i], l.nodes[i], l.nodes[1-i]
	if e.knownBoot != 0 && e.knownBoot < peer.boots && !e.proven {
		switch {
		case e.refused:
			s.prove(l, i, elector.ProofRefusedAfterEOF)
		case e.eof && e.knownIdentity == peer.disk.identity:
			s.prove(l, i, elector.ProofReincarnated)
		}
	}
	e.up, e.eof, e.silent = true, false, false
	if e.knownBoot != peer.boots {
		e.knownBoot, e.knownIdentity = peer.boots, peer.disk.identity
		e.refused, e.proven = false, false
	}
	s.observe(Event{Kind: EventLinkUp, Node: n.id, Peer: peer.id})
	s.hear(n, elector.LinkUp{Peer: peer.id})
	s.measure(n)
}

// measure tells a machine the round trip to a majority of the voters that its process is
// connected to, if the machine wants to know it. A real node finds it out by pings, within
// seconds.
func (s *Sim) measure(n *node) {
	var trips []time.Duration
	voters := n.voters()
	for _, l := range n.links {
		if i := l.side(n); l.ends[i].up && slices.Contains(voters, l.nodes[1-i].id) {
			there, back := &l.dirs[1-i].Faults, &l.dirs[i].Faults
			trips = append(trips, there.Delay+there.Jitter+back.Delay+back.Jitter)
		}
	}
	trip := elector.TripToMajority(trips, len(voters))
	if n.running() && n.Elector.Timing.MinRandomWait != 0 && trip != n.roundTrip {
		n.roundTrip = trip
		s.hear(n, elector.Measured{RoundTrip: trip})
	}
}
