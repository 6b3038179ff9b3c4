package testhook

import (
	"hash/fnv"
	"math/rand/v2"
	"sync"
	"time"
)

// Dice is a source of random numbers for one purpose. A number depends on the seed and the
// microsecond, not on earlier numbers. So two runs of one seed do not diverge if two events of
// one moment come in another order.
type Dice struct {
	mu            sync.Mutex
	seed, purpose uint64
	now           int64
	draws         uint64 // in that microsecond
}

// NewDice returns the dice of a seed for a purpose.
func NewDice(seed uint64, purpose string) *Dice {
	hash := fnv.New64a()
	hash.Write([]byte(purpose))
	return &Dice{seed: seed, purpose: hash.Sum64()}
}

// Uint64 is any number.
func (d *Dice) Uint64() uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	if now := time.Now().UnixMicro(); now != d.now {
		d.now, d.draws = now, 0
	}
	d.draws++
	return rand.NewPCG(d.seed^d.draws, d.purpose^uint64(d.now)).Uint64()
}

// Below is a number below limit.
func (d *Dice) Below(limit int) int { return int(d.Uint64() % uint64(limit)) }

// UpTo is a time below limit, in microseconds.
func (d *Dice) UpTo(limit time.Duration) time.Duration {
	return time.Duration(d.Uint64() % uint64(limit)).Truncate(time.Microsecond)
}

// Delays returns random functions for Network.Delay of package memnet. Each pair of hosts has
// numbers of its own, so that packets of different pairs rarely arrive at one moment.
func Delays(seed uint64) (latency func(from, to string) time.Duration, lag func() time.Duration) {
	var pairs sync.Map
	latency = func(from, to string) time.Duration {
		pair, _ := pairs.LoadOrStore(from+">"+to, NewDice(seed, from+">"+to))
		dice := pair.(*Dice)
		if dice.Below(500) == 0 {
			return 20*time.Millisecond + dice.UpTo(200*time.Millisecond)
		}
		return 100*time.Microsecond + dice.UpTo(2*time.Millisecond)
	}
	dice := NewDice(seed, "lag")
	return latency, func() time.Duration {
		if dice.Below(2) == 0 {
			return 0
		}
		return dice.UpTo(time.Millisecond)
	}
}
