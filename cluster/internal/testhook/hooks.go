// Package testhook lets this module's own tests replace the network, the clock, the disk and
// the membership of a node. Other modules cannot import it.
package testhook

import (
	"context"
	"math/rand/v2"

	"github.com/bmqelect/bmqelect/cluster/internal/store"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/base/clock"
	"github.com/bmqelect/bmqelect/netmesh"
)

// Hooks replace a node's connections to the outside. A nil field means the real one.
type Hooks struct {
	Network netmesh.Network
	Clock   clock.Clock
	// Peers are the mesh addresses of all members; if set, there is no gossip.
	Peers map[elector.NodeID]string
	// Gate is called by the driver before each of its steps. While it blocks, the node
	// decides nothing: that is how tests pause a node.
	Gate func()
	// Disk gets the writes of the durable state. If set, nothing is synced.
	Disk store.Disk
	// Entropy is called by the driver, and once for the mesh at the start.
	Entropy func() uint64
	// Stepped, if not nil, is called by the driver after each step of an election, and before
	// the driver carries out the effects of the step.
	Stepped func(Step)
	// Dead reports whether the node's process counts as killed. Then its guarded work counts as
	// ended, and Close releases the data directory at once, as the kernel would.
	Dead func() bool
}

// Step is a step of an election. Its pointers are valid during the call.
type Step struct {
	Group   string
	In      elector.Input // a Tick replaces inputs that change no promise
	Effects *elector.Effects
	State   elector.State
	Lease   elector.Lease
}

// Unsynced is a Disk that writes at once. A node with a Disk does not fsync, which would take
// real time in a test in virtual time.
func Unsynced(write func() error) error { return write() }

type key struct{}

// With returns a context that makes cluster.Start use h.
func With(ctx context.Context, h Hooks) context.Context {
	return context.WithValue(ctx, key{}, h)
}

// From returns the hooks of the context, with a clock and functions that can be called.
func From(ctx context.Context) Hooks {
	h, _ := ctx.Value(key{}).(Hooks)
	if h.Clock == nil {
		h.Clock = clock.System()
	}
	if h.Gate == nil {
		h.Gate = func() {}
	}
	if h.Entropy == nil {
		h.Entropy = rand.Uint64
	}
	if h.Dead == nil {
		h.Dead = func() bool { return false }
	}
	return h
}
