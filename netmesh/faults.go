package netmesh

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/bmqelect/bmqelect/elector"
)

// Direction says which way a fault works, seen from this node.
type Direction uint8

// The directions.
const (
	In   Direction = 1 << iota // from the peer to this node
	Out                        // from this node to the peer
	Both = In | Out
)

// String returns "in", "out" or "both".
func (d Direction) String() string {
	switch d {
	case In:
		return "in"
	case Out:
		return "out"
	case Both:
		return "both"
	}
	return fmt.Sprintf("direction(%d)", uint8(d))
}

// Faults are the failures of the network between one Mesh and its peers, for
// tests and scenarios. They work under the frames: what is lost is lost
// silently, pings, goodbyes and handshakes included, and the connection stays.
// The peer elector.AllMembers stands for every peer; what is set for one peer
// adds to it. All methods are safe for concurrent use and work at once. A
// Faults serves one Mesh.
type Faults struct {
	mu    sync.RWMutex
	peers map[elector.NodeID]fault
	reset func(elector.NodeID)
	news  chan struct{} // closed when a fault ends; nil if nobody waits for that
}

// fault is what is wrong between this node and one peer.
type fault struct {
	cut           Direction
	delay, jitter time.Duration
	loss          float64
}

// NewFaults returns a Faults without any fault.
func NewFaults() *Faults { return &Faults{peers: make(map[elector.NodeID]fault)} }

// Cut loses every frame between this node and peer in that direction, in
// addition to what is cut already. New connections between the two time out: a
// handshake takes both directions.
func (f *Faults) Cut(peer elector.NodeID, dir Direction) {
	f.change(peer, func(x *fault) { x.cut |= dir & Both })
}

// Delay makes every frame to peer late by delay plus a random part of jitter.
// Frames stay in order. Negative values count as 0.
func (f *Faults) Delay(peer elector.NodeID, delay, jitter time.Duration) {
	f.change(peer, func(x *fault) { x.delay, x.jitter = max(delay, 0), max(jitter, 0) })
}

// Loss loses that share of the frames to peer, from 0 to 1, at random.
func (f *Faults) Loss(peer elector.NodeID, share float64) {
	f.change(peer, func(x *fault) { x.loss = min(max(share, 0), 1) })
}

// Reset resets the connection to peer, if there is one, now.
func (f *Faults) Reset(peer elector.NodeID) {
	f.mu.RLock()
	reset := f.reset
	f.mu.RUnlock()
	if reset != nil {
		reset(peer)
	}
}

// Heal ends every fault that was set for peer.
func (f *Faults) Heal(peer elector.NodeID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.peers, peer)
	f.tell()
}

// HealAll ends every fault.
func (f *Faults) HealAll() {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.peers)
	f.tell()
}

// changed returns a channel that is closed when some fault ends.
func (f *Faults) changed() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.news == nil {
		f.news = make(chan struct{})
	}
	return f.news
}

// tell is called with mu held.
func (f *Faults) tell() {
	if f.news != nil {
		close(f.news)
		f.news = nil
	}
}

// String lists the faults, sorted by peer; "none" if there are none.
func (f *Faults) String() string {
	f.mu.RLock()
	defer f.mu.RUnlock()
	var all []string
	for _, peer := range slices.Sorted(maps.Keys(f.peers)) {
		all = append(all, string(peer)+": "+f.peers[peer].String())
	}
	if len(all) == 0 {
		return "none"
	}
	return strings.Join(all, "; ")
}

func (x fault) String() string {
	var parts []string
	if x.cut != 0 {
		parts = append(parts, "cut "+x.cut.String())
	}
	if x.delay+x.jitter > 0 {
		parts = append(parts, fmt.Sprintf("delay %s+%s", x.delay, x.jitter))
	}
	if x.loss > 0 {
		parts = append(parts, fmt.Sprintf("loss %.3g", x.loss))
	}
	return strings.Join(parts, ", ")
}

func (f *Faults) change(peer elector.NodeID, set func(*fault)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	x := f.peers[peer]
	set(&x)
	if x == (fault{}) {
		delete(f.peers, peer)
		return
	}
	f.peers[peer] = x
}

func (f *Faults) onReset(reset func(elector.NodeID)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reset = reset
}

// cut reports whether any of the directions to peer is cut.
func (f *Faults) cut(peer elector.NodeID, dir Direction) bool {
	return f.of(peer).cut&dir != 0
}

// Blocks reports whether nothing at all passes between this node and peer: what
// reaches peer on other ways than the mesh can be cut together with it.
func (f *Faults) Blocks(peer elector.NodeID) bool { return f.cut(peer, In) && f.cut(peer, Out) }

// outgoing decides about one frame to peer.
func (f *Faults) outgoing(peer elector.NodeID) (lost bool, delay time.Duration) {
	x := f.of(peer)
	if x.cut&Out != 0 || x.loss > 0 && rand.Float64() < x.loss {
		return true, 0
	}
	if x.jitter > 0 {
		x.delay += rand.N(x.jitter)
	}
	return false, x.delay
}

func (f *Faults) of(peer elector.NodeID) fault {
	f.mu.RLock()
	defer f.mu.RUnlock()
	x, all := f.peers[peer], f.peers[elector.AllMembers]
	return fault{
		cut: x.cut | all.cut, delay: x.delay + all.delay, jitter: x.jitter + all.jitter,
		loss: max(x.loss, all.loss),
	}
}
