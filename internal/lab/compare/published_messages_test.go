package compare_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/bully"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/ring"
	"github.com/bmqelect/bmqelect/internal/lab/report"
	"github.com/bmqelect/bmqelect/internal/lab/sim"
)

var (
	drawMessages = flag.Bool("messages", false, "draw the plot of messages anew")
	rings        = flag.Int("rings", 10, "random rings of each size in the plot of messages")
)

// sizes of clusters in which the messages of an election are counted.
var sizes = []int{3, 4, 6, 8, 12, 16, 24, 32, 48, 64}

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

// messages holds the election, and counts what is sent, by name.
func (e election) messages(t *testing.T) map[string]int {
	begin, end, leader := time.Duration(0), 2*time.Second, e.order[0]
	if e.crash != noCrash {
		begin, end, leader = 5500*time.Millisecond, 8700*time.Millisecond, e.order[1]
	}
	counts := map[string]int{}
	cfg := sim.Config{
		Algorithm: e.algorithm, Order: e.order, Network: sim.Faults{Delay: time.Millisecond},
		Observer: func(ev *sim.Event) {
			if ev.Kind == sim.EventSent && ev.At >= begin {
				counts[ev.Message.Name()]++
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
	delete(counts, "HEARTBEAT")
	return counts
}

// members are n names.
func members(n int) (ids []elector.NodeID) {
	for i := range n {
		ids = append(ids, elector.NodeID(fmt.Sprintf("n%02d", i)))
	}
	return ids
}

// falling is a ring along which identifiers fall, rising one along which they rise.
func falling(n int) []elector.NodeID { return members(n) }

func rising(n int) []elector.NodeID {
	ids := members(n)
	slices.Reverse(ids)
	return ids
}

// Garcia-Molina's algorithm, as textbooks count: after the highest of n members has failed, at
// best n - 1 messages, if the second highest is the first to notice, and at worst O(n^2), if all
// hold an election. The rules give for the worst case exactly: ELECTION to all that are higher,
// n(n-1)/2; an ANSWER to each but those to the dead, (n-1)(n-2)/2; COORDINATOR, n - 2. Together
// n^2 - n - 1. When all n members start at once, n^2 - 1.
func TestMessagesOfBully(t *testing.T) {
	for _, n := range sizes {
		ids := members(n)
		require.Equal(t, map[string]int{"ELECTION": 1, "COORDINATOR": n - 2},
			election{bully.Bully, ids, host, ids[1]}.messages(t), "%d members, best", n)
		require.Equal(t, map[string]int{
			"ELECTION": n * (n - 1) / 2, "ANSWER": (n - 1) * (n - 2) / 2, "COORDINATOR": n - 2,
		}, election{bully.Bully, ids, host, ""}.messages(t), "%d members, worst", n)
		require.Equal(t, map[string]int{
			"ELECTION": n * (n - 1) / 2, "ANSWER": n * (n - 1) / 2, "COORDINATOR": n - 1,
		}, election{bully.Bully, ids, noCrash, ""}.messages(t), "%d members, start", n)
	}
}

// Chang and Roberts, if all members start: 2n - 1 messages at best, if identifiers rise along
// the ring, and n(n-1)/2 + n at worst, if they fall. ELECTED takes n more.
func TestMessagesOfRing(t *testing.T) {
	for _, n := range sizes {
		require.Equal(t, map[string]int{"ELECTION": 2*n - 1, "ELECTED": n},
			election{algorithm: ring.Ring, order: rising(n)}.messages(t), "%d members, best", n)
		require.Equal(t, map[string]int{"ELECTION": n*(n-1)/2 + n, "ELECTED": n},
			election{algorithm: ring.Ring, order: falling(n)}.messages(t), "%d members, worst", n)
	}
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

// The list ring: n messages to find the highest, and n to tell, always. Of n + 1 members the
// highest has failed, and one of the others notices.
func TestMessagesOfListRing(t *testing.T) {
	for _, n := range sizes {
		for _, ids := range [][]elector.NodeID{rising(n + 1), falling(n + 1)} {
			require.Equal(t, map[string]int{"ELECTION": n, "ELECTED": n},
				election{ring.List, ids, process, ids[n/2]}.messages(t), "%d members", n)
		}
	}
}

// TestPlotOfMessages measures what the plot of docs shows beside the formulas.
func TestPlotOfMessages(t *testing.T) {
	total := func(counts map[string]int) (sum float64) {
		for _, n := range counts {
			sum += float64(n)
		}
		return sum
	}
	onRings := func(order func(n int) []elector.NodeID) func(n int) float64 {
		return func(n int) float64 {
			return total(election{algorithm: ring.Ring, order: order(n)}.messages(t))
		}
	}
	random := rand.New(rand.NewPCG(1979, 0))
	series := []struct {
		label    string
		sample   bool // the measured ones are
		formula  func(n float64) float64
		measured func(n int) float64
	}{
		{"bully, worst: n\u00b2 - n - 1", false, func(n float64) float64 { return n*n - n - 1 },
			func(n int) float64 {
				return total(election{bully.Bully, members(n), host, ""}.messages(t))
			}},
		{"ring, worst: n(n-1)/2 + n, and n", false, func(n float64) float64 { return n*(n-1)/2 + 2*n },
			onRings(falling)},
		{"ring, mean: n H(n), and n", true, func(n float64) float64 { return n*harmonic(n) + n },
			func(n int) float64 {
				sum := 0.
				for range *rings {
					sum += onRings(func(n int) []elector.NodeID {
						ids := members(n)
						random.Shuffle(n, func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
						return ids
					})(n)
				}
				return sum / float64(*rings)
			}},
		{"ring, best: 2n - 1, and n", false, func(n float64) float64 { return 3*n - 1 },
			onRings(rising)},
		{"list ring: n, and n", false, func(n float64) float64 { return 2 * n },
			func(n int) float64 {
				ids := members(n + 1)
				return total(election{ring.List, ids, process, ids[n/2]}.messages(t))
			}},
		{"bully, best: n - 1", false, func(n float64) float64 { return n - 1 },
			func(n int) float64 {
				ids := members(n)
				return total(election{bully.Bully, ids, host, ids[1]}.messages(t))
			}},
	}
	plot := report.Plot{
		Title: "Messages of one election",
		About: "Lines are the formulas of the literature, marks what the simulator counted, from 3 to " +
			"64 members: of the bully algorithm after a failure, of Chang and Roberts' ring if all " +
			"start, of a list ring if one does.",
		X: report.Axis{Label: "members", Ticks: []float64{3, 4, 6, 8, 12, 16, 24, 32, 48, 64}, Log: true},
		Y: report.Axis{Label: "messages: formula (line), simulator (marks)",
			Ticks: []float64{2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000}, Log: true},
	}
	for _, s := range series {
		drawn := report.Series{Label: s.label}
		for _, n := range sizes {
			want, got := s.formula(float64(n)), s.measured(n)
			drawn.Curve = append(drawn.Curve, report.Point{X: float64(n), Y: want})
			drawn.Marks = append(drawn.Marks, report.Point{X: float64(n), Y: got})
			if s.sample {
				require.InDelta(t, want, got, want/4, "%s, %d members", s.label, n)
			} else {
				require.Equal(t, want, got, "%s, %d members", s.label, n)
			}
		}
		plot.Series = append(plot.Series, drawn)
	}
	const file = "../../../docs/pictures/messages.svg"
	if *drawMessages {
		require.NoError(t, os.WriteFile(file, plot.SVG(), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err, "go test -messages draws it")
	if *rings == 10 {
		require.Equal(t, string(want), string(plot.SVG()))
	}
}

// harmonic is 1 + 1/2 + ... + 1/n.
func harmonic(n float64) (sum float64) {
	for i := 1.; i <= n; i++ {
		sum += 1 / i
	}
	return sum
}
