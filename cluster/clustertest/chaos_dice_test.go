package clustertest

import (
	"hash/fnv"
	"math/rand/v2"
	"sync"
	"time"
)

// dice is a source of random numbers for one purpose. A number depends on the seed and the
// microsecond, not on earlier numbers. So two runs of one seed do not diverge if two events of
// one moment come in another order.
type dice struct {
	mu            sync.Mutex
	seed, purpose uint64
	now           int64
	draws         uint64 // in that microsecond
}

// newDice returns the dice of a seed for a purpose.
func newDice(seed uint64, purpose string) *dice {
	hash := fnv.New64a()
	hash.Write([]byte(purpose))
	return &dice{seed: seed, purpose: hash.Sum64()}
}

// Uint64 is any number.
func (d *dice) Uint64() uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	if now := time.Now().UnixMicro(); now != d.now {
		d.now, d.draws = now, 0
	}
	d.draws++
	return rand.NewPCG(d.seed^d.draws, d.purpose^uint64(d.now)).Uint64()
}

// Below is a number below limit.
func (d *dice) Below(limit int) int { return int(d.Uint64() % uint64(limit)) }

// UpTo is a time below limit, in microseconds.
func (d *dice) UpTo(limit time.Duration) time.Duration {
	return time.Duration(d.Uint64() % uint64(limit)).Truncate(time.Microsecond)
}

// delays returns random functions for Network.Delay of package memnet. Each pair of hosts has
// numbers of its own, so that packets of different pairs rarely arrive at one moment.
func delays(seed uint64) (latency func(from, to string) time.Duration, lag func() time.Duration) {
	var pairs sync.Map
	latency = func(from, to string) time.Duration {
		found, _ := pairs.LoadOrStore(from+">"+to, newDice(seed, from+">"+to))
		d := found.(*dice)
		if d.Below(500) == 0 {
			return 20*time.Millisecond + d.UpTo(200*time.Millisecond)
		}
		return 100*time.Microsecond + d.UpTo(2*time.Millisecond)
	}
	d := newDice(seed, "lag")
	return latency, func() time.Duration {
		if d.Below(2) == 0 {
			return 0
		}
		return d.UpTo(time.Millisecond)
	}
}
