// Package node is what the processes of a benchmark share, whatever they elect with. A
// process reports on its standard output each leader that it learns of, and obeys
// commands on its standard input.
package node

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// Spec says what a process is to be.
type Spec struct {
	Self  int    // its index
	Life  int    // how often it was started before
	Nodes int    // how many there are
	Host  string // a loopback address
	Base  int    // the first of two ports for each node
	Dir   string // durable state, kept over restarts
	// Values says that the first node leads, also in that many other elections, and that values
	// are written: see Writer.
	Values int
	// Elections says that every node stands in that many elections.
	Elections int
	// Kind and Period are the system's own: which variant, and with which heartbeat
	// period.
	Kind   string
	Period time.Duration
	// Hosts replace Host where each node has an address of its own, by index.
	Hosts []string
	// TLSDir has ca.crt, tls.crt and tls.key, by which nodes know each other; "" for no TLS.
	TLSDir string
	// Probes says that our elector watches the health of the node and its application.
	Probes bool
	// Work, if set, is done beside the elector while this node leads.
	Work *Work
}

// Name is that of a node in reports.
func Name(index int) string { return fmt.Sprintf("n%d", index+1) }

// ID is the name of this node.
func (s Spec) ID() string { return Name(s.Self) }

// Addr is the address of a node's port: 0 or 1.
func (s Spec) Addr(index, port int) string {
	host := s.Host
	if s.Hosts != nil {
		host = s.Hosts[index]
	}
	return fmt.Sprintf("%s:%d", host, s.Base+2*index+port)
}

// Member is a running elector. Its methods may be called from several goroutines.
type Member interface {
	// Leads answers, without a round trip, whether this node leads.
	Leads() bool
	// HandOver gives leadership to another node. An error means that it did not.
	HandOver() error
}

// Writer is a member that keeps values.
type Writer interface {
	// Write writes a value that a quorum keeps, in one of Spec.Values places that do not wait for
	// each other.
	Write(ctx context.Context, place int, value []byte) error
}

// Grower is a member that can make another node a voter, and returns when it is one.
type Grower interface {
	Grow(ctx context.Context, index int) error
}

// Summer is a member that sums up its elections, and stops in good order.
type Summer interface {
	Sum() Sums
	Close(ctx context.Context) error
}

// Start starts a member. It calls saw with the name of each leader that the library
// tells of, "" for none.
type Start func(spec Spec, saw func(leader string)) (Member, error)

// Now is the time in nanoseconds, on a clock that all processes of the machine share.
func Now() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(err) // every Linux has it
	}
	return ts.Nano()
}
