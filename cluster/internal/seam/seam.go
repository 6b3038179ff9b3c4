// Package seam lets this module's own tests run nodes on another network, clock
// and membership than the machine's. Programs cannot reach it.
package seam

import (
	"context"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/clock"
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
	// Dead reports whether the node's process counts as killed: its guarded work is
	// gone then, and Close releases the data directory at once, as the kernel would.
	Dead func() bool
}

type key struct{}

// With returns a context that makes cluster.Start use s.
func With(ctx context.Context, s Seam) context.Context {
	return context.WithValue(ctx, key{}, s)
}

// From returns the context's seam; the zero Seam if it has none.
func From(ctx context.Context) Seam {
	s, _ := ctx.Value(key{}).(Seam)
	return s
}
