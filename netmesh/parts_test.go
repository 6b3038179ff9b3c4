package netmesh

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/stretchr/testify/require"
)

// TestQueueKeepsTheOrder: whatever is pushed, in whatever order, leaves as it would from a plain
// list from which each push removes its like first. So a newer message overtakes no other, and
// what a link that sends nothing keeps is bounded by the elections and the kinds of messages.
func TestQueueKeepsTheOrder(t *testing.T) {
	const groups, kinds = 5, 9
	for seed := range uint64(200) {
		random, q, want, spare := rand.New(rand.NewPCG(seed, 0)), queue{}, []queued(nil), []queued(nil)
		for seq := range uint64(500) {
			item := queued{strconv.Itoa(random.IntN(groups)), heartbeat(seq)}
			item.msg.Kind = elector.Kind(1 + random.IntN(kinds))
			want = append(slices.DeleteFunc(want, func(i queued) bool { return i.key() == item.key() }),
				item)
			q.push(item.group, &item.msg)
			require.Equal(t, len(want), q.waiting())
			require.LessOrEqual(t, len(q.items), 2*groups*kinds+8)
			if random.IntN(100) == 0 {
				spare = q.swap(spare)
				require.Equal(t, want, spare, "seed %d", seed)
				want = nil
			}
		}
	}
}

func TestQueueTakesNoMemoryOnceItWasAsFull(t *testing.T) {
	var q queue
	m, spare := heartbeat(1), []queued(nil)
	round := func() {
		for range 3 {
			q.push("a", &m)
			q.push("b", &m)
		}
		spare = q.swap(spare)
	}
	round()
	round()
	require.Zero(t, testing.AllocsPerRun(100, round))
}

func TestMeter(t *testing.T) {
	var m meter
	now := time.Now()
	m.pong(1, now) // nobody asked
	rtt, loss := m.read()
	require.Zero(t, rtt)
	require.Zero(t, loss)
	for i := range 10 {
		n := m.next(now, 0)
		if i%2 == 0 {
			m.pong(n, now.Add(8*time.Millisecond))
			m.pong(n, now.Add(time.Hour)) // twice
		}
	}
	rtt, loss = m.read()
	require.Equal(t, 8*time.Millisecond, rtt)
	require.InDelta(t, 4.0/9, loss, 1e-9, "the newest is on its way")
	for range 100 {
		m.next(now, 0)
	}
	_, loss = m.read()
	require.Equal(t, 1.0, loss)
	m.pong(1, now.Add(time.Hour)) // too old
	rtt, _ = m.read()
	require.Equal(t, 8*time.Millisecond, rtt)
}

func TestBackoffDoublesUpToItsLimit(t *testing.T) {
	b := backoff{min: 10 * time.Millisecond, max: 100 * time.Millisecond,
		random: rand.New(rand.NewPCG(1, 2))}
	for range 2 {
		for _, full := range []time.Duration{10, 20, 40, 80, 100, 100} {
			d := b.next()
			require.LessOrEqual(t, d, full*time.Millisecond)
			require.GreaterOrEqual(t, d, full*time.Millisecond/2)
		}
		b.current = 0
	}
}

func TestNames(t *testing.T) {
	for r := reasonNone; r < reasonEnd; r++ {
		require.NotEmpty(t, r.String())
	}
	require.Equal(t, "reason(200)", Reason(200).String())
	require.Len(t, Reasons(), int(reasonEnd)-1)
}

func TestHostileTextDoesNotReachTheLogRaw(t *testing.T) {
	f := goodbye{Reason: 200, Text: "line\nbreak \x1b[31m"}
	require.Equal(t, `line\nbreak \x1b[31m`, f.refusal().Text)
}

// The names of a usual number of elections take memory once. A peer that invents names makes this
// node keep only a bounded number of bytes.
func TestNamesAreKeptOnceAndBounded(t *testing.T) {
	n := interner{most: maxInterned}
	names := make([][]byte, 5000)
	for i := range names {
		names[i] = []byte("election-" + strconv.Itoa(i))
		n.of(names[i])
	}
	require.Zero(t, testing.AllocsPerRun(10, func() {
		for _, name := range names {
			n.of(name)
		}
	}))
	for i := range 100_000 {
		n.of([]byte(strconv.Itoa(i)))
		require.LessOrEqual(t, n.size, maxInterned)
		require.LessOrEqual(t, len(n.known), maxInterned/internedCost)
	}
}
