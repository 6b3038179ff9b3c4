// Package foreign lets a node run another algorithm than package elector's, to show it on
// real processes. Such a node has no lease. Status, Leader and Observe show what the algorithm
// believes; but IsLeader is false on every node, NextLSN refuses, and no work is guarded.
package foreign

import (
	"context"

	"github.com/bmqelect/bmqelect/elector"
)

// Machine is what runs in place of the elector's machine. One goroutine calls it.
type Machine interface {
	// Step acts on an input, and on what Receive has left. It sends by itself; of the effects
	// only the transitions and Wake are set.
	Step(now elector.Time, entropy uint64, in elector.Input) elector.Effects
	// Status has the role, the leader, the term and the quorum.
	Status() elector.Status
	// Receive leaves a message for the next step.
	Receive(from elector.NodeID, body []byte)
}

// Setup is what a machine is made of.
type Setup struct {
	Election elector.Config
	Dir      string // the node's data directory
	// Send sends to a member, or to all; it never blocks.
	Send func(to elector.NodeID, body []byte)
	// Fail ends the node's part in its elections: its state can no longer be kept. It never
	// blocks.
	Fail func(error)
}

// New makes a machine. The error says what is wrong with the election or the directory.
type New func(Setup) (Machine, error)

// Algorithm is another algorithm; the zero Algorithm is none.
type Algorithm struct {
	Name string // as people call it
	New  New
}

type key struct{}

// With returns a context that makes cluster.Start run an algorithm.
func With(ctx context.Context, a Algorithm) context.Context {
	return context.WithValue(ctx, key{}, a)
}

// From returns what With gave.
func From(ctx context.Context) Algorithm {
	a, _ := ctx.Value(key{}).(Algorithm)
	return a
}
