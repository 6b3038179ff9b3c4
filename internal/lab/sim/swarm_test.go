package sim_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/bmqelect/bmqelect/elector/spec"
	"github.com/bmqelect/bmqelect/internal/lab/sim"
	"github.com/bmqelect/bmqelect/scouting"
)

// plot is all that a run depends on. A file in testdata/schedules is one.
type plot struct {
	About    string `json:",omitzero"`
	Config   sim.Config
	Start    time.Duration // until the first step
	Schedule []step
	// Live demands a leader within a bound once all faults have ended.
	Live bool
}

// TestSwarm plays schedules each of which has a random part of all kinds of faults, each at a
// random rate: what many kinds together prevent, some of them alone may bring about (Groce et
// al., "Swarm testing"). SOAK_RUNS says how many; the default is what rapid.checks says. What
// fails is shrunk and written to testdata/schedules.
func TestSwarm(t *testing.T) {
	parts := runtime.GOMAXPROCS(0)
	shareRuns(t, parts)
	sum, began := &tally{events: map[string]int{}}, time.Now()
	t.Cleanup(func() {
		t.Logf("%d runs, %.0f per second: %s", sum.runs,
			float64(sum.runs)/time.Since(began).Seconds(), sum)
		if sum.runs >= 1000 {
			for _, do := range kinds() {
				require.NotZero(t, sum.events[do], "no run has done %q", do)
			}
		}
	})
	for part := range parts {
		t.Run(strconv.Itoa(part), func(t *testing.T) {
			t.Parallel()
			var last plot // of the smallest that fails, at the end
			var broken error
			defer func() { keepPlot(t, &last, broken) }()
			rapid.Check(t, func(t *rapid.T) {
				last = drawPlot(t)
				one := &tally{runs: 1, events: map[string]int{}}
				broken = last.play(one)
				sum.add(one)
				require.NoError(t, broken)
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
	takeover := rapid.SampledFrom([]time.Duration{0, 0, time.Second, 5 * time.Second}).Draw(t,
		"takeover")
	rule := scouting.RuleDefault
	if !p.Live && rapid.IntRange(0, 3).Draw(t, "rule") == 3 {
		rule = scouting.RuleNodeOrder
	}
	ids := append(names(len(p.Config.Nodes)), theLeader)
	for i := range p.Config.Nodes {
		e := &p.Config.Nodes[i].Elector
		e.Rule = rule
		if takeover >= e.Timing.HeartbeatBroadcast {
			e.Takeover = takeover
		}
	}
	do := []string{"wait"}
	for _, kind := range rapid.Permutation(kinds()).Draw(t, "kinds") { // small draws are more frequent
		rate := rapid.SampledFrom([]int{0, 0, 1, 3, 9}).Draw(t, kind)
		do = append(do, slices.Repeat([]string{kind}, rate)...)
	}
	least := rapid.SampledFrom([]int{1, 10, 40}).Draw(t, "steps")
	p.Schedule = rapid.SliceOfN(drawStep(ids, do), least, 2*least+10).Draw(t, "schedule")
	return p
}

// play plays a run, and counts what happens.
func (p *plot) play(count *tally) error {
	cfg := p.Config
	cfg.Observer = count.see
	s, err := sim.New(cfg)
	if err != nil {
		return err
	}
	defer func() { count.simulated += s.Now() }()
	if err := s.RunFor(p.Start); err != nil {
		return err
	}
	for _, st := range p.Schedule {
		count.events[st.Do]++
	}
	if err := play(s, p.Schedule); err != nil || !p.Live {
		return err
	}
	s.SetFsync(cfg.FsyncMin, cfg.FsyncMax)
	if err := calm(s); err != nil {
		return err
	}
	for end := s.Now() + bound(cfg); s.Now() < end; {
		if err := s.RunFor(100 * time.Millisecond); err != nil {
			return err
		}
		if _, ok := s.Leader(); ok {
			return nil
		}
	}
	return fmt.Errorf("nobody leads until %s, %s after all faults have ended", s.Now(), bound(cfg))
}

// tally counts what happened in runs.
type tally struct {
	mu        sync.Mutex
	runs      int
	simulated time.Duration
	events    map[string]int // by kind, of steps and of what followed from them
}

func (c *tally) see(e *sim.Event) {
	switch e.Kind {
	case sim.EventSent, sim.EventLost, sim.EventDied, sim.EventLinkDown, sim.EventTransition:
		c.events["event "+e.Kind.String()]++
	}
}

func (c *tally) add(one *tally) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.runs += one.runs
	c.simulated += one.simulated
	for kind, n := range one.events {
		c.events[kind] += n
	}
}

func (c *tally) String() string {
	text := fmt.Sprintf("%.0f simulated hours", c.simulated.Hours())
	for _, kind := range slices.Sorted(maps.Keys(c.events)) {
		text += fmt.Sprintf(", %s %d", kind, c.events[kind])
	}
	return text
}

const schedules = "testdata/schedules"

// keepPlot writes a run that failed to a file, for TestSchedules.
func keepPlot(t *testing.T, p *plot, broken error) {
	if !t.Failed() || broken == nil {
		return
	}
	rule, v := "leaderless", (*spec.Violation)(nil)
	if errors.As(broken, &v) {
		rule = v.Rule
	}
	p.About = rule + ": found by TestSwarm"
	content, err := json.MarshalIndent(p, "", "\t")
	require.NoError(t, err)
	name := strings.ReplaceAll(fmt.Sprintf("%s-%d.json", rule, p.Config.Seed), " ", "-")
	require.NoError(t, os.MkdirAll(schedules, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(schedules, name), content, 0o644))
	t.Logf("written to %s: go test ./internal/lab/sim -run TestSchedules/%s", schedules, name)
}

// TestSchedules plays what TestSwarm has found.
func TestSchedules(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(schedules, "*.json"))
	require.NoError(t, err)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			content, err := os.ReadFile(file)
			require.NoError(t, err)
			var p plot
			require.NoError(t, json.Unmarshal(content, &p))
			require.NoError(t, p.play(&tally{events: map[string]int{}}))
		})
	}
}
