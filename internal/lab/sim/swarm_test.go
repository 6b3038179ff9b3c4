package sim_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"hash/crc32"
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
	sum, began := newTally(), time.Now()
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
				one := newTally()
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
	count.runs++
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
	return spec.Broken("leaderless", "nobody leads until %s, %s after all faults have ended", s.Now(), bound(cfg))
}

// tally counts what happened in runs.
type tally struct {
	mu        sync.Mutex
	runs      int
	simulated time.Duration
	events    map[string]int // by kind, of steps and of what followed from them
}

func newTally() *tally { return &tally{events: map[string]int{}} }

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
	rule := ruleOf(broken)
	p.shorten(rule)
	p.About = rule + ": found by TestSwarm"
	content, err := p.text()
	require.NoError(t, err)
	name := fmt.Sprintf("%s-%08x", rule, crc32.ChecksumIEEE(content))
	require.NoError(t, os.MkdirAll(schedules, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(schedules, name+".json"), content, 0o644))
	t.Logf("%d steps are enough: %v\nwritten to %s; run it again: "+
		"go test ./internal/lab/sim -run TestSchedules/%s", len(p.Schedule), p.Schedule, schedules, name)
}

// ruleOf names what a run broke; "" if nothing.
func ruleOf(err error) string {
	if err == nil {
		return ""
	}
	if v := (*spec.Violation)(nil); errors.As(err, &v) {
		return v.Rule
	}
	return "other"
}

// shorten leaves out steps as long as the same rule is broken: rapid leaves many. The others
// happen when they did.
func (p *plot) shorten(rule string) {
	for size := len(p.Schedule) / 2; size > 0; size /= 2 {
		for at := 0; at+size <= len(p.Schedule); {
			less := *p
			less.Schedule = slices.Delete(slices.Clone(p.Schedule), at, at+size)
			for _, st := range p.Schedule[at : at+size] {
				if at < len(less.Schedule) {
					less.Schedule[at].Wait += st.Wait
				}
			}
			if ruleOf(less.play(newTally())) == rule {
				*p = less
			} else {
				at += size
			}
		}
	}
}

// text is the run as JSON without what is zero, a node and a step on a line each.
func (p *plot) text() ([]byte, error) {
	content, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	var all any
	in := json.NewDecoder(bytes.NewReader(content))
	in.UseNumber() // seeds have 64 bits
	if err := in.Decode(&all); err != nil {
		return nil, err
	}
	if content, err = json.Marshal(withoutZeros(all)); err != nil {
		return nil, err
	}
	for _, item := range []string{`{"A":`, `{"ClockRatePPM":`, `{"Elector":`, `{"Do":`} {
		content = bytes.ReplaceAll(content, []byte(item), []byte("\n"+item))
	}
	return append(content, '\n'), nil
}

// withoutZeros leaves out what is zero of a value that was JSON.
func withoutZeros(v any) any {
	all, ok := v.(map[string]any)
	if list, isList := v.([]any); isList {
		for i := range list {
			list[i] = withoutZeros(list[i])
		}
	}
	if !ok {
		return v
	}
	for key, value := range all {
		all[key] = withoutZeros(value)
		switch all[key] {
		case nil, "", false, json.Number("0"):
			delete(all, key)
		}
		if m, ok := all[key].(map[string]any); ok && len(m) == 0 && key != "Bounds" {
			delete(all, key)
		}
	}
	return all
}

// TestSchedules plays what TestSwarm has found.
func TestSchedules(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(schedules, "*.json"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			content, err := os.ReadFile(file)
			require.NoError(t, err)
			var p plot
			require.NoError(t, json.Unmarshal(content, &p))
			require.NoError(t, p.play(newTally()))
			again, err := p.text()
			require.NoError(t, err)
			require.Equal(t, string(content), string(again), "a part of the file says nothing")
		})
	}
}
