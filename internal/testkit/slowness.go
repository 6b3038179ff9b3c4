// Package testkit helps tests: it says how long to wait on a busy machine, collects what others
// write, and formats the Markdown lists of the pages that tests generate. It may be used by
// several goroutines at once.
package testkit

import (
	"crypto/sha256"
	"sync"
	"time"
)

// Limit returns how long to wait for one step of a test that takes at most d on an idle machine:
// d times the factor by which work is slower now than on an idle machine. It is never shorter
// than d.
func Limit(d time.Duration) time.Duration { return time.Duration(float64(d) * now()) }

var newest struct {
	sync.Mutex
	slowness float64
	at       time.Time
}

// fresh is how long a measurement serves.
const fresh = 10 * time.Second

// now returns how many times slower work is now than on an idle machine, at least 1.
func now() float64 {
	newest.Lock()
	defer newest.Unlock()
	if newest.slowness == 0 || time.Since(newest.at) > fresh {
		newest.slowness = measure()
		newest.at = time.Now()
	}
	return newest.slowness
}

// measure does work that takes 50 ms on an idle machine, which is longer than a time slice of the
// scheduler. It repeats one piece of work, so short that some pieces are not interrupted: the
// fastest one shows the speed of the idle machine.
func measure() float64 {
	var input [64 << 10]byte
	fastest, began := time.Hour, time.Now()
	done := time.Duration(0)
	for pieces := 1; done < 50*time.Millisecond; pieces++ {
		start := time.Now()
		sha256.Sum256(input[:])
		fastest = min(fastest, time.Since(start))
		if fastest <= 0 { // the time of testing/synctest
			return 1
		}
		done = time.Duration(pieces) * fastest
	}
	return max(1, float64(time.Since(began))/float64(done))
}
