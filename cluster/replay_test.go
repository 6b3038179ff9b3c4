package cluster

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster/internal/testhook"
)

// playSeeds plays a random schedule in virtual time for each of several seeds, or for the
// one of BMQELECT_SEED. It plays each seed twice and compares what happened: a seed that a
// failed test prints is to show the failure again. The runtime alone draws what comes first
// of two things at one moment, so most histories are equal; if anything drew from another
// source, hardly any would be.
func playSeeds(t *testing.T, count int, play func(w *seededWorld)) {
	if !raceDetector { // it lets goroutines run in random order in any case
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	}
	seeds, err := testhook.Seeds(count)
	require.NoError(t, err)
	equal := 0
	for _, seed := range seeds {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			defer func() {
				if t.Failed() {
					t.Logf("run it again: %s=%d go test -run '%s' ./cluster", testhook.SeedVariable, seed, t.Name())
				}
			}()
			one := playSeed(t, seed, play)
			if raceDetector {
				return
			}
			two := playSeed(t, seed, play)
			at := 0
			for at < min(len(one), len(two)) && one[at] == two[at] {
				at++
			}
			if at == len(one) && at == len(two) {
				equal++
			} else {
				t.Logf("the histories differ:\n%q\n%q", one[at:min(at+1, len(one))], two[at:min(at+1, len(two))])
			}
		})
	}
	if len(seeds) == count && !raceDetector {
		require.GreaterOrEqual(t, 2*equal, count, "two runs of one seed differ too often")
	}
}

// playSeed plays a schedule once, and returns what happened.
func playSeed(t *testing.T, seed uint64, play func(w *seededWorld)) (history []string) {
	synctest.Test(t, func(t *testing.T) {
		w := &seededWorld{world: newWorld(t, "a", "b", "c"), dice: newDice(seed, "schedule")}
		w.seed = seed
		if !raceDetector { // which crashes in a bubble of synctest with that many timers
			// Packets of different nodes do not meet at one moment.
			lag := newDice(seed, "lag")
			w.net.Delay(w.latency(), func() time.Duration { return lag.upTo(time.Millisecond) })
		}
		play(w)
		history = w.history
	})
	return history
}

// seededWorld is a world in which all that is random follows from the seed.
type seededWorld struct {
	*world
	dice    *dice
	subs    []*Subscription // by voter
	history []string        // what the nodes did, one node after the other
}

// record keeps the events of the nodes for the history.
func (w *seededWorld) record() {
	for _, id := range w.voters {
		w.subs = append(w.subs, w.nodes[id].Subscribe(10_000))
	}
}

// endRecord ends the history: what follows is not to be compared.
func (w *seededWorld) endRecord() {
	for i, sub := range w.subs {
		sub.Close()
		for e := range sub.Events() {
			w.history = append(w.history, fmt.Sprintf("%s %s %s", w.voters[i], e.Time.Format(time.StampMicro), e.Transition))
		}
	}
}

// latency is what packets take from host to host.
func (w *seededWorld) latency() func(from, to string) time.Duration {
	pairs := map[string]*dice{}
	for _, from := range w.voters {
		for _, to := range w.voters {
			pairs[string(from+to)] = newDice(w.seed, string(from+to))
		}
	}
	return func(from, to string) time.Duration {
		return 100*time.Microsecond + pairs[from+to].upTo(2*time.Millisecond)
	}
}

// dice is a source of chance for one purpose. What it shows depends on the microsecond, so
// that two runs stay together that differ in the order of two things at one moment.
type dice struct {
	mu            sync.Mutex
	seed, purpose uint64
	now           int64
	draws         uint64 // in that microsecond
}

func newDice(seed uint64, purpose string) *dice {
	hash := fnv.New64a()
	hash.Write([]byte(purpose))
	return &dice{seed: seed, purpose: hash.Sum64()}
}

func (d *dice) uint64() uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	if now := time.Now().UnixMicro(); now != d.now {
		d.now, d.draws = now, 0
	}
	d.draws++
	return rand.NewPCG(d.seed^d.draws, d.purpose^uint64(d.now)).Uint64()
}

// pick is a number below n.
func (d *dice) pick(n int) int { return int(d.uint64() % uint64(n)) }

// upTo is a time below limit, in microseconds.
func (d *dice) upTo(limit time.Duration) time.Duration {
	return time.Duration(d.uint64() % uint64(limit)).Truncate(time.Microsecond)
}
