// Package fault puts failures of the network between one mesh and its peers, for tests and
// rehearsals. They work under the frames of links that are up: what is lost is lost
// silently, pings and goodbyes included, and the connection stays.
package fault

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/netmesh"
)

// Direction says which way a fault works, seen from this node.
type Direction uint8

// The directions.
const (
	In   Direction = 1 << iota // from the peer to this node
	Out                        // from this node to the peer
	Both = In | Out
)

// Faults are the failures between one mesh and its peers. The peer elector.AllMembers
// stands for every peer; what is set for one peer adds to it. All methods are safe for
// concurrent use and work at once.
type Faults struct {
	mu      sync.Mutex
	peers   map[elector.NodeID]fault
	conns   map[*conn]struct{}
	changed chan struct{} // closed when a fault ends
}

var _ netmesh.FaultLayer = (*Faults)(nil)

// fault is what is wrong between this node and one peer.
type fault struct {
	cut           Direction
	delay, jitter time.Duration
	loss          float64
}

// New returns a Faults without any fault.
func New() *Faults {
	return &Faults{
		peers: map[elector.NodeID]fault{}, conns: map[*conn]struct{}{}, changed: make(chan struct{}),
	}
}

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

// Heal ends every fault that was set for peer.
func (f *Faults) Heal(peer elector.NodeID) {
	f.change(peer, func(x *fault) { *x = fault{} })
}

// HealAll ends every fault.
func (f *Faults) HealAll() {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.peers)
	f.wakeReaders()
}

func (f *Faults) change(peer elector.NodeID, set func(*fault)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	x := f.peers[peer]
	set(&x)
	f.peers[peer] = x
	if x == (fault{}) {
		delete(f.peers, peer)
		f.wakeReaders()
	}
}

// wakeReaders is called with mu held.
func (f *Faults) wakeReaders() {
	close(f.changed)
	f.changed = make(chan struct{})
}

// Reset resets the connections to peer, if there are any, now.
func (f *Faults) Reset(peer elector.NodeID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for c := range f.conns {
		if c.peer == peer {
			c.reset.Store(true)
			_ = c.SetLinger(0)
			_ = c.Conn.Close()
		}
	}
}

// Cuts reports whether frames to or from peer are lost.
func (f *Faults) Cuts(peer elector.NodeID) bool { return f.of(peer).cut != 0 }

// Blocks reports whether nothing at all passes between this node and peer: what
// reaches peer on other ways than the mesh can be cut together with it.
func (f *Faults) Blocks(peer elector.NodeID) bool { return f.of(peer).cut == Both }

// of returns what is wrong between this node and peer.
func (f *Faults) of(peer elector.NodeID) fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	x, all := f.peers[peer], f.peers[elector.AllMembers]
	return fault{
		cut: x.cut | all.cut, delay: x.delay + all.delay, jitter: x.jitter + all.jitter,
		loss: max(x.loss, all.loss),
	}
}

// lost decides about one frame to the peer. Datagram implements netmesh.FaultLayer. Datagrams are
// cut, lost and delayed as frames are, each by itself.
func (f *Faults) Datagram(peer elector.NodeID, in bool) (after time.Duration, lost bool) {
	x := f.of(peer)
	if in {
		return 0, x.cut&In != 0
	}
	return x.late(), x.lost()
}

func (x fault) late() time.Duration {
	if x.jitter > 0 {
		return x.delay + rand.N(x.jitter)
	}
	return x.delay
}

func (x fault) lost() bool { return x.cut&Out != 0 || x.loss > 0 && rand.Float64() < x.loss }

// String lists the faults, sorted by peer; "none" if there are none.
func (f *Faults) String() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []string
	for _, peer := range slices.Sorted(maps.Keys(f.peers)) {
		x := f.peers[peer]
		var parts []string
		if x.cut != 0 {
			parts = append(parts, "cut "+[...]string{In: "in", Out: "out", Both: "both"}[x.cut])
		}
		if x.delay+x.jitter > 0 {
			parts = append(parts, fmt.Sprintf("delay %s+%s", x.delay, x.jitter))
		}
		if x.loss > 0 {
			parts = append(parts, fmt.Sprintf("loss %.3g", x.loss))
		}
		all = append(all, string(peer)+": "+strings.Join(parts, ", "))
	}
	if len(all) == 0 {
		return "none"
	}
	return strings.Join(all, "; ")
}
