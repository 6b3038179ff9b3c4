// Package seam lets this module's own tests run nodes on another network, clock
// and membership than the machine's. Programs cannot reach it.
package seam

import (
	"context"
	"math/rand/v2"

	"github.com/bmqelect/bmqelect/cluster/internal/store"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/base/clock"
	"github.com/bmqelect/bmqelect/netmesh"
)

// Seam replaces what touches the outside. A nil field means the real thing.
type Seam struct {
	Network netmesh.Network
	Clock   clock.Clock
	// Peers are the mesh addresses of all members; if set, there is no gossip.
	Peers map[elector.NodeID]string
	// Hold is called by the driver before everything that it does. While it
	// blocks, the node decides nothing: so tests pause a node.
	Hold func()
	// Disk gets the writes of the durable state. If set, nothing is synced.
	Disk store.Disk
	// Entropy is called by the driver, and once for the mesh at the start.
	Entropy func() uint64
	// Dead reports whether the node's process counts as killed: its guarded work is
	// gone then, and Close releases the data directory at once, as the kernel would.
	Dead func() bool
}

// Unsynced is a Disk that only saves the time of fsync, which is real where the
// rest of a test runs in virtual time.
func Unsynced(write func() error) error { return write() }

type key struct{}

// With returns a context that makes cluster.Start use s.
func With(ctx context.Context, s Seam) context.Context {
	return context.WithValue(ctx, key{}, s)
}

// From returns the context's seam, with functions that can be called.
func From(ctx context.Context) Seam {
	s, _ := ctx.Value(key{}).(Seam)
	if s.Hold == nil {
		s.Hold = func() {}
	}
	if s.Entropy == nil {
		s.Entropy = rand.Uint64
	}
	if s.Dead == nil {
		s.Dead = func() bool { return false }
	}
	return s
}
