package netmesh

import (
	"context"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/google/uuid"
)

// maxMembers bounds the records that strangers with a right handshake can make
// us keep.
const maxMembers = 1024

// peer is what is known of one member, with or without a link.
type peer struct {
	m      *Mesh
	node   elector.NodeID
	ctx    context.Context // of its dialer
	cancel context.CancelFunc
	wake   chan struct{} // the dialer looks again
	// turn is held by whoever calls the handler about this peer: the calls come
	// one at a time and in order. It is taken before Mesh.mu, never after, and
	// is a channel so that waiting for it is waiting in virtual time too.
	turn    chan struct{}
	queue   queue
	traffic traffic

	// Guarded by Mesh.mu.
	addr     string // of AddPeer; "" for a stranger, whom nobody dials
	removed  bool   // RemovePeer was called, the link is on its way out
	gone     bool   // no longer in Mesh.peers
	known    bool   // identity and boot mean something
	identity uuid.UUID
	boot     uint64    // the highest seen
	process  uint64    // number of the process of that boot; 0 if unknown
	copy     uint64    // number of a process on a copy of its directory, as it showed; 0 for none
	departed bool      // that process is no more: it said so, or it is proven dead
	link     *link     // nil if down
	epoch    uint64    // counts links: evidence about an earlier one is void
	evidence *evidence // of the newest link; nil if there is none, or nothing to learn from it
	proof    proofWanted
	reach    reach
	lazy     bool // the next dial is not at once
	// forgotten says that Forget was called since the last link: nothing is known.
	forgotten bool
	status    peerStatus
}

// proofWanted asks the dialer to find out whether the process behind an evidence
// connection that ended by a FIN is gone.
type proofWanted struct {
	addr  string // where that process listened; "" if nothing is wanted
	epoch uint64
	dials int // made for it already
}

// peerStatus is for Links alone.
type peerStatus struct {
	since time.Time
	loss  elector.Evidence
	err   string
}

func newPeer(m *Mesh, node elector.NodeID) *peer {
	p := &peer{
		m: m, node: node, turn: make(chan struct{}, 1), wake: make(chan struct{}, 1),
		status: peerStatus{since: time.Now()},
	}
	p.ctx, p.cancel = context.WithCancel(m.ctx)
	return p
}

// poke makes the dialer look again.
func (p *peer) poke() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

func (p *peer) takeTurn()  { p.turn <- struct{}{} }
func (p *peer) leaveTurn() { <-p.turn }

// hears reports whether what comes in on l is the peer's word: a link of the
// very same process is up. Frames of a replaced connection still count.
func (p *peer) hears(l *link) bool {
	p.m.mu.RLock()
	defer p.m.mu.RUnlock()
	return p.link != nil && p.link.info.Boot == l.info.Boot
}
