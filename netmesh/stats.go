package netmesh

import (
	"math/bits"
	"slices"
	"strings"
	"sync"
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
	Encrypted bool          // by TLS
	RTT       time.Duration // smoothed round-trip time of pings; 0 if unknown
	Loss      float64       // share of pings without answer, 0 to 1
	Forgotten bool          // Forget was called since the last link
	Evidence  bool          // there is a connection that would show the death of the peer's process

	LastLoss elector.Evidence // how the last link ended
	LastErr  string           // text of the last error; "" after a link came up

	FramesIn, FramesOut, BytesIn, BytesOut uint64 // since the peer was added
	Queued                                 int    // messages that wait

	// Beats is how beats, and the answers to those of the peer, go to the peer while the link is
	// up: BeatsDatagrams, BeatsStream or BeatsNone; BeatsWhy says why not by datagrams.
	Beats, BeatsWhy string
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
			s.Encrypted = p.link.encrypted
			s.RTT, s.Loss = p.link.meter.read()
			p.link.beats(&s)
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

// meter measures round-trip time and loss of one link by its pings.
type meter struct {
	mu       sync.Mutex
	last     uint64        // number of the newest ping; the first is 1
	sent     [64]departure // by number modulo 64
	answered uint64        // one bit per ping, the newest lowest
	rtt      time.Duration // smoothed; 0 before the first answer
}

// departure is when a ping left, by the time of this process and by the clock
// that is compared with the peer's.
type departure struct {
	at    time.Time
	clock time.Duration
}

// next numbers a ping that leaves now.
func (m *meter) next(now time.Time, clock time.Duration) uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last++
	m.sent[m.last%64] = departure{now, clock}
	m.answered <<= 1
	return m.last
}

// newest is the number of the last ping that left; 0 before the first.
func (m *meter) newest() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.last
}

// pong takes an answer into account, and returns when its ping left, by the clock. An answer
// that nobody asked for, or a repeated one, is not ok and changes nothing.
func (m *meter) pong(number uint64, now time.Time) (left time.Duration, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if number == 0 || number > m.last || m.last-number >= 64 {
		return 0, false
	}
	bit := uint64(1) << (m.last - number)
	if m.answered&bit != 0 {
		return 0, false
	}
	m.answered |= bit
	sent := m.sent[number%64]
	sample := now.Sub(sent.at)
	if m.rtt == 0 {
		m.rtt = sample
	} else {
		m.rtt += (sample - m.rtt) / 8 // RFC 6298's weight
	}
	return sent.clock, true
}

// read returns the smoothed round-trip time, 0 if unknown, and the share of
// the last 63 pings that got no answer. The newest ping does not count: its answer may
// be on its way.
func (m *meter) read() (rtt time.Duration, loss float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.last < 2 {
		return m.rtt, 0
	}
	due := min(m.last-1, 63)
	got := uint64(bits.OnesCount64((m.answered >> 1) & (1<<due - 1)))
	return m.rtt, float64(due-got) / float64(due)
}
