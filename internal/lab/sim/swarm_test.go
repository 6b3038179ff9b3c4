package sim_test

import (
	"flag"
	"maps"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/bmqelect/bmqelect/scouting"
)

// TestSwarm plays schedules. Each has a random subset of all kinds of faults, each kind at a
// random rate: a subset may bring about what all kinds together prevent (Groce et al., "Swarm
// testing"). SOAK_RUNS says how many schedules; the default is that of rapid.checks. A schedule
// that fails is shrunk and written to testdata/schedules.
func TestSwarm(t *testing.T) {
	parts := runtime.GOMAXPROCS(0)
	shareRuns(t, parts)
	var all sync.Mutex // guards the sums over all parts
	runs, simulated, steps, began := 0, time.Duration(0), map[string]int{}, time.Now()
	t.Cleanup(func() {
		t.Logf("%d runs, %.0f per second: %.0f simulated hours, %v", runs,
			float64(runs)/time.Since(began).Seconds(), simulated.Hours(), steps)
		for _, do := range kinds() {
			require.True(t, runs < 1000 || steps[do] > 0, "no run has done %q", do)
		}
	})
	for part := range parts {
		t.Run(strconv.Itoa(part), func(t *testing.T) {
			t.Parallel()
			var last plot // at the end, the smallest that fails
			var broken error
			defer func() { keepPlot(t, &last, broken) }()
			rapid.Check(t, func(t *rapid.T) {
				last = drawPlot(t)
				var took time.Duration
				took, broken = last.play()
				require.NoError(t, broken)
				all.Lock()
				defer all.Unlock()
				runs, simulated = runs+1, simulated+took
				for _, st := range last.Schedule {
					steps[st.Do]++
				}
			})
		})
	}
}

// shareRuns gives each part its share of SOAK_RUNS.
func shareRuns(t *testing.T, parts int) {
	text := os.Getenv("SOAK_RUNS")
	if text == "" {
		return
	}
	runs, err := strconv.Atoi(text)
	require.NoError(t, err, "SOAK_RUNS is a number of runs")
	checks := flag.Lookup("rapid.checks")
	before := checks.Value.String()
	t.Cleanup(func() { require.NoError(t, checks.Value.Set(before)) })
	require.NoError(t, checks.Value.Set(strconv.Itoa((runs+parts-1)/parts)))
}

// kinds are all kinds of steps in the order of their names.
func kinds() []string { return slices.Sorted(maps.Keys(deeds)) }

// drawPlot draws a cluster, the kinds of faults that it meets, and a schedule of them.
func drawPlot(t *rapid.T) plot {
	p := plot{Config: drawClusterOf(t, 3, 9, 2), Start: drawStart(t)}
	switch rapid.IntRange(0, 2).Draw(t, "kind of cluster") {
	case 0:
		enable(p.Config)
		p.Live = true
	case 1:
		narrow(t, p.Config)
	}
	takeover := pick(t, "takeover", 0, 0, time.Second, 5*time.Second)
	prepare := pick(t, "prepare", 0, time.Second, 5*time.Second)
	rule := scouting.RuleDefault
	if !p.Live && rapid.IntRange(0, 3).Draw(t, "rule") == 3 {
		rule = scouting.RuleNodeOrder
	}
	ids := append(names(len(p.Config.Nodes)), theLeader)
	for i := range p.Config.Nodes {
		e := &p.Config.Nodes[i].Elector
		e.Rule, e.Prepare = rule, prepare
		if e.Observer() && rapid.Bool().Draw(t, "joins") {
			e.Voters = nil
		}
		if takeover >= e.Timing.HeartbeatBroadcast {
			e.Takeover = takeover
		}
	}
	do := []string{"wait"}
	for _, kind := range rapid.Permutation(kinds()).Draw(t, "kinds") { // small draws are more frequent
		rate := pick(t, kind, 0, 0, 1, 3, 9)
		do = append(do, slices.Repeat([]string{kind}, rate)...)
	}
	least := pick(t, "steps", 1, 10, 40)
	p.Schedule = rapid.SliceOfN(drawStep(ids, do), least, 2*least+10).Draw(t, "schedule")
	return p
}
