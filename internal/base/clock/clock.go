// Package clock reads the one clock that a node runs by: monotonic, in
// nanoseconds from an arbitrary zero, comparable within one process only.
//
// A clock never steps with the wall clock. System also counts the time for which
// the machine was suspended, so that a node which slept finds its lease expired
// when it wakes. Clocks are safe for concurrent use and allocate nothing.
package clock

import "time"

// Clock tells the time since an arbitrary start: always positive, never going backwards.
type Clock interface {
	Now() time.Duration
}

// System returns the clock for real use: CLOCK_BOOTTIME on Linux, which goes on
// counting while the machine sleeps, and the clock of Process elsewhere or
// where the kernel refuses it.
func System() Clock {
	if c, ok := boottime(); ok {
		return c
	}
	return Process()
}

// Process returns a clock on the time package, at 1 ns when it is made. Inside a
// testing/synctest bubble it is the bubble's virtual time. It may stand still
// while the machine sleeps.
func Process() Clock { return process{start: time.Now()} }

type process struct{ start time.Time }

// Now is never 0, because 0 means "no deadline" to the elector.
func (p process) Now() time.Duration { return 1 + time.Since(p.start) }
