package chaos

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/bmqelect/bmqelect/cluster/internal/testhook"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const stepsOfASchedule = 40

// TestRandomSchedules plays random schedules; CHAOS_SEEDS says how many.
func TestRandomSchedules(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // so that a seed gives one run
	seeds, err := testhook.Seeds(number(t, "CHAOS_SEEDS", 16))
	require.NoError(t, err)
	broken, played := map[string][]uint64{}, tally{}
	defer func() { t.Logf("%d schedules: %v", len(seeds), played) }()
	for _, seed := range seeds {
		t.Logf("seed %d", seed)
		s := draw(seed, stepsOfASchedule)
		played.add(s)
		v, log := play(t, s)
		if v == nil {
			continue
		}
		broken[v.rule] = append(broken[v.rule], seed)
		if len(broken[v.rule]) == 1 {
			t.Error(report(t, s, v, log))
		}
	}
	for rule, by := range broken {
		t.Logf("%d of %d schedules broke the rule %q: seeds %d", len(by), len(seeds), rule, by)
	}
}

// tally counts the steps of schedules by what they do, and the seconds that they last.
type tally map[string]int

func (c tally) add(s schedule) {
	lasts := bootTime
	for _, step := range s.steps {
		c[step.op]++
		lasts += step.after
	}
	c["simulated seconds"] += int(lasts.Seconds())
}

// TestASeedGivesOneRun plays schedules twice. Nothing random is left but what the
// runtime draws for things that happen at one moment, so nearly all are equal; if
// anything else drew from another source, hardly one would be. With two elections much
// more happens at one moment, as when a link of both ends, so these are only counted.
func TestASeedGivesOneRun(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	if raced() {
		t.Skip("with the race detector goroutines run in random order")
	}
	schedules := max(20, number(t, "CHAOS_SEEDS", 0)/10)
	seeds, err := testhook.Seeds(schedules)
	require.NoError(t, err)
	var all, equal [2]int // by whether there is an election beside
	differ := ""
	for _, seed := range seeds {
		s := draw(seed, stepsOfASchedule)
		beside := len(s.elections) - 1
		all[beside]++
		_, one := play(t, s)
		_, two := play(t, s)
		if slices.Equal(one, two) {
			equal[beside]++
			continue
		}
		at := 0
		for at < min(len(one), len(two))-1 && one[at] == two[at] {
			at++
		}
		differ += fmt.Sprintf("seed %d:\n%s\n%s\n", seed, one[at], two[at])
	}
	t.Logf("%d of %d schedules gave one run, with another election %d of %d; not so\n%s",
		equal[0], all[0], equal[1], all[1], differ)
	if len(seeds) == schedules {
		require.GreaterOrEqual(t, 2*equal[0], all[0])
	}
}

func raced() bool {
	build, _ := debug.ReadBuildInfo()
	return build != nil && slices.Contains(build.Settings, debug.BuildSetting{Key: "-race",
		Value: "true"})
}

func number(t *testing.T, variable string, otherwise int) int {
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err, variable)
	return n
}

// report says how a schedule broke a rule, after it has shortened it.
func report(t *testing.T, s schedule, v *violation, log []string) string {
	least, leastLog := shorten(t, s, v.rule)
	if leastLog != nil {
		log = leastLog
	}
	const lines = 60
	return fmt.Sprintf("%s: %s\nrun it again: %s=%d go test -run %s ./cluster/internal/chaos\n"+
		"%d of %d steps are enough:\n%v\nthe end of the log:\n%s",
		v.rule, v.text, testhook.SeedVariable, s.seed, "TestRandomSchedules", len(least.steps),
		len(s.steps), least,
		strings.Join(log[max(0, len(log)-lines):], "\n"))
}

// shorten leaves out steps as long as the same rule is broken, and returns what is
// left with the log of its last run.
func shorten(t *testing.T, s schedule, rule string) (schedule, []string) {
	var log []string
	began := time.Now()
	for size := len(s.steps) / 2; size > 0; size /= 2 {
		for at := 0; at < len(s.steps) && time.Since(began) < time.Minute; {
			less := s
			less.steps = without(s.steps, at, min(at+size, len(s.steps)))
			if v, lines := play(t, less); v != nil && v.rule == rule {
				s, log = less, lines
			} else {
				at += size
			}
		}
	}
	return s, log
}

// without leaves out some steps; the others happen when they did.
func without(steps []step, from, to int) []step {
	rest := slices.Concat(steps[:from], steps[to:])
	if to < len(steps) {
		for _, s := range steps[from:to] {
			rest[from].after += s.after
		}
	}
	return rest
}
