package shards

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/cluster"
)

// parse reads loads such as "a5 b0".
func parse(t *testing.T, text string) map[cluster.NodeID]int {
	t.Helper()
	loads := map[cluster.NodeID]int{}
	for _, word := range strings.Fields(text) {
		n, err := strconv.Atoi(word[1:])
		require.NoError(t, err)
		loads[cluster.NodeID(word[:1])] = n
	}
	return loads
}

func text(hand []handing) string {
	var words []string
	for _, h := range hand {
		words = append(words, fmt.Sprintf("%s%d", h.to, h.count))
	}
	return strings.Join(words, " ")
}

func TestSurplus(t *testing.T) {
	for _, c := range []struct{ loads, self, hands string }{
		{"a5", "a", ""},
		{"a5 b0", "a", "b2"},
		{"a5 b0", "b", ""},
		{"a3 b2 c2", "a", ""},
		{"a2 b3 c2", "b", ""},
		{"a4 b2 c2", "a", "b1"},
		{"a4 b1 c1", "a", "c1 b1"},
		{"a9 b9 c0", "a", "c3"},
		{"a9 b9 c0", "b", "c3"},
		{"a8 b6 c0 d0", "a", "d3 c1"}, // 4 4 3 3: a and b fill d and c from the end
		{"a8 b6 c0 d0", "b", "c2"},
		{"a0 b0 c0", "a", ""},
		{"a1 b0 c0", "a", ""},
	} {
		t.Run(c.loads+" "+c.self, func(t *testing.T) {
			require.Equal(t, c.hands, text(surplus(parse(t, c.loads), cluster.NodeID(c.self))))
		})
	}
}

// Seeded returns random numbers whose seed is in the log of the test; BMQELECT_SEED repeats it.
func Seeded(t *testing.T) *rand.Rand {
	t.Helper()
	seed := rand.Uint64()
	if given, err := strconv.ParseUint(os.Getenv("BMQELECT_SEED"), 10, 64); err == nil {
		seed = given
	}
	t.Logf("BMQELECT_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// What all nodes hand over by themselves makes the loads equal, with the fewest moves.
func TestSurplusOfAllNodesIsOnePlan(t *testing.T) {
	random := Seeded(t)
	for range 2000 {
		loads, total, moves := map[cluster.NodeID]int{}, 0, 0
		for _, id := range nodes(1 + random.IntN(8)) {
			loads[id] = random.IntN(1 + random.IntN(50))
			total += loads[id]
		}
		after := map[cluster.NodeID]int{}
		for id, load := range loads {
			after[id] += load
			for _, h := range surplus(loads, id) {
				require.NotEqual(t, id, h.to)
				require.Positive(t, h.count)
				after[id] -= h.count
				after[h.to] += h.count
				moves += h.count
			}
		}
		fewest, more := 0, total%len(loads)
		for id, load := range loads {
			require.Contains(t, []int{total / len(loads), total/len(loads) + 1}, after[id], "%v", loads)
			if over := load - total/len(loads); over > 0 {
				fewest += over
				if more > 0 { // it keeps one that cannot be divided
					fewest--
					more--
				}
			}
		}
		require.Equal(t, fewest, moves, "%v", loads)
	}
}

// Each line is what a sees in one second, and what it then hands over.
func TestHysteresis(t *testing.T) {
	for name, story := range map[string]string{
		"a small difference stays": `
			a5 b3 c4: | a5 b3 c4: | a5 b3 c4: | a5 b3 c4:`,
		"a large one stays a while, and then goes to the last": `
			a9 b3 c3: | a9 b3 c3: | a9 b3 c3: c2 b2 | a7 b4 c4: c1 b1 | a6 b4 c5: b1 | a5 b5 c5: |
			a5 b5 c5:`,
		"one that was short has no effect later": `
			a9 b3 c3: | a5 b5 c5: | a9 b3 c3: | a9 b3 c3: | a9 b3 c3: c2 b2`,
		"after it was equal it has to last again": `
			a4 b0: | a4 b0: | a4 b0: b2 | a2 b2: | a4 b0: | a4 b0: | a4 b0: b2`,
		"a tenth of many is tolerated": `
			a210 b191: | a210 b191: | a210 b191: | a215 b186: | a215 b186: | a215 b186: b14`,
		"another node leads too many": `
			a3 b9 c3: | a3 b9 c3: | a3 b9 c3: | a3 b9 c3:`,
		"alone": `a9: | a9: | a9: | a9:`,
	} {
		t.Run(name, func(t *testing.T) {
			h, now := hysteresis{hold: 2 * time.Second}, time.Now()
			for i, line := range strings.Split(story, "|") {
				loads, hands, _ := strings.Cut(strings.TrimSpace(line), ":")
				require.Equal(t, strings.TrimSpace(hands), text(h.step(now, parse(t, loads), "a")),
					"second %d: %s", i, loads)
				now = now.Add(time.Second)
			}
		})
	}
}
