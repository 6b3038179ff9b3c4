package shards_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster/shards"
	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/testkit/nodes"
)

// Nodes leave and come back a hundred times, less often under the race detector: killed, stopped or
// cut off. Work never overlaps, each planned move makes the loads more equal (the world checks
// both), and in the end nothing moves. The seed is printed; BMQELECT_SEED repeats it.
func TestAHundredRoundsOfLeavingAndJoining(t *testing.T) {
	random, rounds := shards.Seeded(t), 100
	if nodes.Raced {
		rounds = 30
	}
	inWorld(t, five, shards.Config{N: 17}, func(t *testing.T, w *world) {
		w.awaitAll()
		for range rounds {
			w.round(random)
		}
		for _, id := range five {
			if !slices.Contains(w.Running(), id) {
				w.back(id)
			}
		}
		time.Sleep(30 * hold)
		w.requireEven(5)
		before, planned := w.owners(), w.planned
		require.Greater(t, planned, rounds/5, "the balance had something to do")
		time.Sleep(30 * time.Minute)
		require.Equal(t, before, w.owners())
		require.Equal(t, planned, w.planned)
	})
}

// round lets a node leave, or one or two that are down come back, and some time pass: less and more
// than Hold. A quorum stays: one that is back counts for it as soon as it may promise.
func (w *world) round(random *rand.Rand) {
	running, t := w.Running(), elector.Article()
	id := running[random.IntN(len(running))]
	switch random.IntN(4) {
	case 0:
		if len(running) > 3 {
			w.crash(id)
		}
	case 1:
		if len(running) > 3 {
			w.stop(id)
		}
	case 2:
		if len(running) > 3 {
			w.setUp(id, false)
			w.Isolate(id)
			time.Sleep(time.Duration(random.Int64N(int64(hold))))
			w.Heal()
			w.awaitAll()
			w.setUp(id, true)
		}
	default:
		for _, id := range five {
			if !slices.Contains(running, id) && random.IntN(2) == 0 {
				w.back(id)
			}
		}
		time.Sleep(t.Promise() + 2*t.HeartbeatBroadcast)
	}
	w.awaitAll()
	time.Sleep(time.Duration(random.Int64N(int64(3 * hold))))
	w.awaitAll()
}
