// Package testkit is for tests alone: how long to wait on a busy machine, what others write for a
// test to read, and the Markdown lists of pages that tests write. All of it may be used by several
// goroutines at once.
package testkit

import (
	"crypto/sha256"
	"sync"
	"time"
)

// Limit is how long to wait for one step of a test that takes at most d on a machine with
// nothing else to do: d, times how much longer work takes now than it would there. A limit only
// ends what hangs; it is never shorter than d.
func Limit(d time.Duration) time.Duration { return time.Duration(float64(d) * now()) }

var newest struct {
	sync.Mutex
	slowness float64
	at       time.Time
}

// fresh is how long a measurement serves.
const fresh = 10 * time.Second

// now is at least 1.
func now() float64 {
	newest.Lock()
	defer newest.Unlock()
	if newest.slowness == 0 || time.Since(newest.at) > fresh {
		newest.slowness = measure()
		newest.at = time.Now()
	}
	return newest.slowness
}

// measure works for 50 ms of an idle machine: longer than one program runs without letting
// others run. It does one piece of work many times over. A piece is so short that some are done
// without interruption: the fastest shows how fast this machine is when it is idle.
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
