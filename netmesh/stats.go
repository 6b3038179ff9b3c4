package netmesh

import (
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/bmqelect/bmqelect/elector"
)

// stats counts by reason.
type stats struct {
	closed [reasonEnd]atomic.Uint64
}

func (s *stats) count(r Reason) {
	if r < reasonEnd { // a newer peer may know more reasons
		s.closed[r].Add(1)
	}
}

// traffic counts what passed on all links to one peer so far.
type traffic struct {
	framesIn, framesOut, bytesIn, bytesOut atomic.Uint64
}

// Counters returns how many connections were refused and links closed by a
// rule, by reason, since Listen, whichever side applied it. Reasons that never occurred are absent.
func (m *Mesh) Counters() map[Reason]uint64 {
	counts := make(map[Reason]uint64)
	for r := range m.stats.closed {
		if n := m.stats.closed[r].Load(); n > 0 {
			counts[Reason(r)] = n
		}
	}
	return counts
}

// LinkState is the state of the link to one peer.
type LinkState uint8

// The states.
const (
	LinkIdle    LinkState = iota // down, and nobody dials: the peer's address is unknown
	LinkDialing                  // down; dialed for ever
	LinkIsUp
)

// String returns the state's name in lower case.
func (s LinkState) String() string {
	return [...]string{"idle", "dialing", "up"}[min(s, LinkIsUp)]
}

// LinkStatus describes the link to one peer.
type LinkStatus struct {
	Peer   PeerInfo      // Node always; Identity and Boot if a process is known; the rest only of a link that is up
	Addr   string        // of AddPeer; "" if the peer came by itself
	State  LinkState     //
	Since  time.Time     // of the link's last going up or down
	Dialed bool          // this side made the connection
	RTT    time.Duration // smoothed round-trip time of pings; 0 if unknown
	Loss   float64       // share of pings without answer, 0 to 1
	// ClockRate is how much faster than this node's clock the peer's runs, in
	// parts per million, known to within ClockDoubt; both 0 until about
	// 24 pings were answered.
	ClockRate, ClockDoubt float64
	WallClock             time.Duration // the peer's wall clock less this node's, to within RTT/2; 0 if unknown
	Proxied               bool          // a proxy or NAT rewrites the connection's addresses
	Forgotten             bool          // Forget was called since the last link
	Evidence              bool          // there is a connection that would show the death of the peer's process

	LastLoss elector.Evidence // how the last link ended
	LastErr  string           // text of the last error; "" after a link came up

	FramesIn, FramesOut, BytesIn, BytesOut uint64 // since the peer was added
	Queued                                 int    // messages that wait
}

// Links returns the state of the links to all peers, sorted by node ID.
func (m *Mesh) Links() []LinkStatus {
	m.mu.RLock()
	defer m.mu.RUnlock()
	all := make([]LinkStatus, 0, len(m.peers))
	for _, p := range m.peers {
		all = append(all, p.report())
	}
	slices.SortFunc(all, func(a, b LinkStatus) int { return strings.Compare(string(a.Peer.Node), string(b.Peer.Node)) })
	return all
}

// report is called with Mesh.mu held.
func (p *peer) report() LinkStatus {
	s := LinkStatus{
		Peer: PeerInfo{Node: p.node}, Addr: p.addr, Forgotten: p.forgotten,
		Since: p.status.since, LastLoss: p.status.loss, LastErr: p.status.err,
		FramesIn: p.traffic.framesIn.Load(), FramesOut: p.traffic.framesOut.Load(),
		BytesIn: p.traffic.bytesIn.Load(), BytesOut: p.traffic.bytesOut.Load(),
	}
	s.Evidence = p.evidence != nil && p.evidence.seen == elector.EvidenceNone
	s.Queued = p.queue.waiting()
	switch {
	case p.link != nil:
		s.State, s.Peer, s.Dialed = LinkIsUp, p.link.info, p.link.dialed
		s.RTT, s.Loss = p.link.meter.read()
		s.Proxied = p.link.proxied.Load()
		rate, known, wall := p.link.rate.read()
		if s.WallClock = wall; known {
			s.ClockRate, s.ClockDoubt = rate.estimate(), rate.doubt()
		}
	case p.addr != "":
		s.State = LinkDialing
	}
	if p.known {
		s.Peer.Identity, s.Peer.Boot = p.identity, p.boot
	}
	return s
}
