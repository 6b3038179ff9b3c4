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

func TestNewerMessageReplacesAnUnsentOlderOneOfItsKind(t *testing.T) {
	var q queue
	push := func(group string, m elector.Message) { q.push(group, &m) }
	cession := elector.Message{Kind: elector.LeadershipCession}
	push("g", heartbeat(1))
	push("g", cession)
	push("other", heartbeat(9))
	push("g", heartbeat(2))
	push("g", ack(3))
	require.Equal(t, 4, q.waiting())
	require.Equal(t, []queued{{"g", cession}, {"other", heartbeat(9)}, {"g", heartbeat(2)},
		{"g", ack(3)}},
		q.swap(nil), "the newer heartbeat must not overtake the cession")
	require.Empty(t, q.swap(nil))
}

// A link that sends nothing for long must not make its queue grow: what waits is
// bounded by the elections of this node and the kinds of messages.
func TestQueueIsBoundedByElectionsAndKinds(t *testing.T) {
	const groups, kinds = 100, 2
	var q queue
	for seq := range uint64(1000) {
		for g := range groups {
			for _, m := range [kinds]elector.Message{heartbeat(seq), ack(seq)} {
				q.push(strconv.Itoa(g), &m)
			}
		}
		require.Equal(t, groups*kinds, q.waiting())
		require.LessOrEqual(t, len(q.items), 2*groups*kinds+8)
	}
	var order []queued
	for g := range groups {
		order = append(order, queued{strconv.Itoa(g), heartbeat(999)}, queued{strconv.Itoa(g), ack(999)})
	}
	require.Equal(t, order, q.swap(nil))
	require.Zero(t, q.waiting())
}

// Whatever is pushed, in whatever order, leaves as it would from a plain list
// from which each push removes its like first.
func TestQueueKeepsTheOrder(t *testing.T) {
	for seed := range uint64(200) {
		random, q, want, spare := rand.New(rand.NewPCG(seed, 0)), queue{}, []queued(nil), []queued(nil)
		for seq := range uint64(500) {
			item := queued{strconv.Itoa(random.IntN(5)), heartbeat(seq)}
			item.msg.Kind = elector.Kind(1 + random.IntN(9))
			want = append(slices.DeleteFunc(want, func(i queued) bool { return i.key() == item.key() }),
				item)
			q.push(item.group, &item.msg)
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

// The names of as many elections as a node may well have take memory once; a peer
// that invents names makes this node keep a bounded number of bytes.
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
