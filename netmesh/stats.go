package netmesh

import (
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/bmqelect/bmqelect/elector"
)

// traffic counts what passed on all links to one peer so far.
type traffic struct {
	framesIn, framesOut, bytesIn, bytesOut atomic.Uint64
}

func (m *Mesh) countReason(r Reason) {
	if r < reasonEnd { // a newer peer may know more reasons
		m.closed[r].Add(1)
	}
}

// Counters returns how many connections were refused and links closed by a
// rule, by reason, since Listen, whichever side applied it. Reasons that never occurred
// are absent.
func (m *Mesh) Counters() map[Reason]uint64 {
	counts := make(map[Reason]uint64)
	for r := range m.closed {
		if n := m.closed[r].Load(); n > 0 {
			counts[Reason(r)] = n
		}
	}
	return counts
}

// LinkStatus describes the link to one peer.
type LinkStatus struct {
	// Peer has the Node always, Identity and Boot if a process is known, and the rest while
	// the link is up.
	Peer      PeerInfo
	Addr      string        // of AddPeer, dialed while the link is down; "" if the peer came by itself
	Up        bool          //
	Since     time.Time     // of the link's last going up or down
	Dialed    bool          // this side made the connection
	RTT       time.Duration // smoothed round-trip time of pings; 0 if unknown
	Loss      float64       // share of pings without answer, 0 to 1
	Forgotten bool          // Forget was called since the last link
	Evidence  bool          // there is a connection that would show the death of the peer's process

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
		s := LinkStatus{
			Peer: PeerInfo{Node: p.node}, Addr: p.addr, Forgotten: p.forgotten,
			Since: p.status.since, LastLoss: p.status.loss, LastErr: p.status.err,
			FramesIn: p.traffic.framesIn.Load(), FramesOut: p.traffic.framesOut.Load(),
			BytesIn: p.traffic.bytesIn.Load(), BytesOut: p.traffic.bytesOut.Load(),
			Queued: p.queue.waiting(),
		}
		if e := p.evidence; e != nil {
			s.Evidence = e.seen == elector.EvidenceNone && e.provable()
		}
		if p.link != nil {
			s.Up, s.Peer, s.Dialed = true, p.link.info, p.link.dialed
			s.RTT, s.Loss = p.link.meter.read()
		}
		if p.known {
			s.Peer.Identity, s.Peer.Boot = p.identity, p.boot
		}
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b LinkStatus) int {
		return strings.Compare(string(a.Peer.Node), string(b.Peer.Node))
	})
	return all
}
