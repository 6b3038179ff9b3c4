// Package health finds out whether a program is fit to lead: its disk takes writes, what it
// depends on answers, its own check passes. A leader can send heartbeats long after it could work.
//
// A node with probes in cluster.Config.Health watches them itself. While one of them says that
// the node is not fit, the node does not stand in any election; as leader it hands over as soon as
// a follower is fit, and leads on until then. So where a fault is everybody's, such as a shared
// disk that hangs, the leader stays. It waits a period before it counts as unfit, so that the
// others can find out the same.
package health

import (
	"cmp"
	"context"
	"time"
)

// MaxName is the longest name of a probe, in bytes.
const MaxName = 64

// Probe checks one thing, again and again.
type Probe struct {
	// Name is that of the probe in the status, unique in a node, at most MaxName bytes without spaces.
	// Required.
	Name string
	// Check returns why the program is not fit to lead, or nil. ctx ends after the time-out. Checks
	// of a probe do not overlap: while one hangs, no other one begins, and the probe fails. Required.
	Check func(ctx context.Context) error
	// Action is what a check does, for the words about one that takes too long: "Action takes
	// longer than 1s". Default "a check".
	Action string
	// Timeout and Failures replace those of Options where they are not 0.
	Timeout  time.Duration
	Failures int
}

// Options say what is watched, and when it counts. The zero value watches nothing.
type Options struct {
	Probes []Probe
	// Period is the time from the start of a check to the next one. Default 1s.
	Period time.Duration
	// Timeout is the time after which a check counts as failed. Default 1s.
	Timeout time.Duration
	// Failures in a row make a probe say that the program is not fit; default 3. Each period in
	// which a check hangs is another one. A probe that has never passed does not wait for them.
	Failures int
	// Successes in a row end that; default 5, more than Failures, so that leadership does not
	// follow a fault that comes and goes. The first success of a probe counts at once.
	Successes int
	// Changed is called when Status.Fit of a probe has changed, by one goroutine at a time. It must
	// neither wait nor call the node. Default none.
	Changed func(Status)
}

// Defaults of Options.
const (
	DefaultPeriod    = time.Second
	DefaultTimeout   = time.Second
	DefaultFailures  = 3
	DefaultSuccesses = 5
)

// Status is what a probe has found.
type Status struct {
	Name string `json:"name"`
	Fit  bool   `json:"fit"` // what the probe says, with the thresholds
	// Why is the newest failure; "" after a success, unless the probe still says not fit.
	Why string `json:"why,omitempty"`
	// Failures counts checks that failed, and periods in which one hung.
	Failures uint64 `json:"failures"`
	// Seconds is how long the newest check took, or has taken so far.
	Seconds float64 `json:"seconds"`
}

// withDefaults fills in what is 0.
func (o Options) withDefaults() Options {
	o.Period = cmp.Or(o.Period, DefaultPeriod)
	o.Timeout = cmp.Or(o.Timeout, DefaultTimeout)
	o.Failures = cmp.Or(o.Failures, DefaultFailures)
	o.Successes = cmp.Or(o.Successes, DefaultSuccesses)
	if o.Changed == nil {
		o.Changed = func(Status) {}
	}
	return o
}
