package published

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/bully"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/ring"
	"github.com/bmqelect/bmqelect/internal/lab/sim"
	"github.com/bmqelect/bmqelect/internal/testkit"
)

// election is a cluster in which one election is held.
type election struct {
	algorithm algorithm.Algorithm
	order     []elector.NodeID // the highest first; on a ring they stand in the order of names
	crash     crash            // of the highest; without, the election is that of the start
	notices   elector.NodeID   // who alone notices the crash in time; "" for all
}

type crash uint8

const (
	noCrash crash = iota
	process       // links tell of it
	host          // nothing does
)

// counts are messages that were sent, by name.
type counts map[string]int

// messages holds the election, and counts what is sent.
func (e election) messages(t *testing.T) counts {
	begin, end, leader := time.Duration(0), 2*time.Second, e.order[0]
	if e.crash != noCrash {
		begin, end, leader = 5500*time.Millisecond, 8700*time.Millisecond, e.order[1]
	}
	sent := counts{}
	cfg := sim.Config{
		Algorithm: e.algorithm, Order: e.order, Network: sim.Faults{Delay: time.Millisecond},
		Observer: func(ev *sim.Event) {
			if ev.Kind == sim.EventSent && ev.At >= begin {
				sent[algorithm.Name(ev.Message)]++
			}
		},
	}
	for _, id := range e.order {
		timing := elector.Article()
		if e.notices != "" && id != e.notices {
			timing.HeartbeatMissCount = 7 // so long that the election is over
		}
		cfg.Nodes = append(cfg.Nodes, sim.NodeConfig{
			Elector: elector.Config{Self: id, Voters: e.order, Timing: timing},
		})
	}
	s, err := sim.New(cfg)
	require.NoError(t, err)
	if e.crash != noCrash {
		require.NoError(t, s.RunUntil(begin))
		require.NoError(t, s.Crash(e.order[0], sim.Crash{Silent: e.crash == host}))
	}
	require.NoError(t, s.RunUntil(end))
	got, _ := s.Leader()
	require.Equal(t, leader, got)
	delete(sent, "HEARTBEAT")
	return sent
}

// rising is a ring along which identifiers rise, the highest first; they fall along members.
func rising(n int) []elector.NodeID {
	ids := members(n)
	slices.Reverse(ids)
	return ids
}

// electionsOf are those among n members whose messages the literature counts, with what it says.
// The first five are plotted.
//
// Garcia-Molina's algorithm, as textbooks count: after the highest of n members has failed, at
// best n - 1 messages, if the second highest is the first to notice, and at worst O(n^2), if all
// hold an election. COORDINATOR goes to all others here, to the dead one, too: one message more.
// The rules give for the worst case exactly: ELECTION to all that are higher, n(n-1)/2; an ANSWER
// to each of those except to the dead, (n-1)(n-2)/2; COORDINATOR, n - 1. Together n^2 - n. When all
// n members start at once, n^2 - 1.
//
// Chang and Roberts, if all members start: 2n - 1 messages at best, if identifiers rise along
// the ring, and n(n-1)/2 + n at worst, if they fall. ELECTED takes n more.
//
// The list ring: n messages to find the highest, and n to tell, always. Of n + 1 members the
// highest has failed, and one of the others notices.
func electionsOf(n int) []countedElection {
	down, up, one := members(n), rising(n), members(n+1)
	pairs := n * (n - 1) / 2
	return []countedElection{
		{"bully, worst: n\u00b2 - n", election{bully.Bully, down, host, ""},
			counts{"ELECTION": pairs, "ANSWER": (n - 1) * (n - 2) / 2, "COORDINATOR": n - 1}},
		{"ring, worst: n(n-1)/2 + n, and n", election{algorithm: ring.Ring, order: down},
			counts{"ELECTION": pairs + n, "ELECTED": n}},
		{"ring, best: 2n - 1, and n", election{algorithm: ring.Ring, order: up},
			counts{"ELECTION": 2*n - 1, "ELECTED": n}},
		{"list ring: n, and n", election{ring.List, one, process, one[n/2]},
			counts{"ELECTION": n, "ELECTED": n}},
		{"bully, best: n", election{bully.Bully, down, host, down[1]},
			counts{"ELECTION": 1, "COORDINATOR": n - 1}},
		{"bully, start", election{bully.Bully, down, noCrash, ""},
			counts{"ELECTION": pairs, "ANSWER": pairs, "COORDINATOR": n - 1}},
		{"list ring, rising", election{ring.List, rising(n + 1), process, rising(n + 1)[n/2]},
			counts{"ELECTION": n, "ELECTED": n}},
	}
}

type countedElection struct {
	label string
	election
	sent counts
}

// TestMessagesOfElections counts what is sent, and requires the file of the plot of docs: what the
// formulas say, and what the simulator counted.
func TestMessagesOfElections(t *testing.T) {
	var texts [6]string // of a series each
	line := func(series int, label string, n int, formula, counted float64) {
		texts[series] += fmt.Sprintf("%q,%d,%.5g,%.5g\n", label, n, formula, counted)
	}
	random := rand.New(rand.NewPCG(1979, 0))
	for _, n := range []int{3, 4, 6, 8, 12, 16, 24, 32, 48, 64} {
		for i, e := range electionsOf(n) {
			got := e.messages(t)
			require.Equal(t, e.sent, got, "%s: %v members", e.label, n)
			if i < 5 {
				line(i, e.label, n, e.sent.total(), got.total())
			}
		}
		want, got := float64(n)*harmonic(float64(n))+float64(n), onRandomRings(t, n, random)
		require.InDelta(t, want, got, want/4, "mean of rings of %v members", n)
		line(5, "ring, mean: n H(n), and n", n, want, got)
	}
	testkit.Golden(t, "testdata/messages.csv",
		"series,members,formula,counted\n"+strings.Join(texts[:], ""))
}

func (c counts) total() (sum float64) {
	for _, n := range c {
		sum += float64(n)
	}
	return sum
}

// onRandomRings is the mean of ten of them.
func onRandomRings(t *testing.T, n int, random *rand.Rand) (mean float64) {
	for range 10 {
		ids := members(n)
		random.Shuffle(n, func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
		mean += election{algorithm: ring.Ring, order: ids}.messages(t).total()
	}
	return mean / 10
}

// harmonic is 1 + 1/2 + ... + 1/n.
func harmonic(n float64) (sum float64) {
	for i := 1.; i <= n; i++ {
		sum += 1 / i
	}
	return sum
}

// Chang and Roberts: n H_n messages on the average of all rings of n members.
func TestMeanMessagesOfRing(t *testing.T) {
	const n, factorial, factorialHn = 5, 120, 274 // 5! and 5! (1 + 1/2 + 1/3 + 1/4 + 1/5)
	total, orders := 0, 0
	var permute func(order, rest []elector.NodeID)
	permute = func(order, rest []elector.NodeID) {
		if len(rest) == 0 {
			orders++
			total += election{algorithm: ring.Ring, order: order}.messages(t)["ELECTION"]
		}
		for i, id := range rest {
			permute(append(slices.Clone(order), id), slices.Concat(rest[:i], rest[i+1:]))
		}
	}
	permute(nil, members(n))
	require.Equal(t, factorial, orders)
	require.Equal(t, n*factorialHn, total)
}
