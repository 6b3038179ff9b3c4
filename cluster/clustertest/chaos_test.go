package clustertest

import (
	"cmp"
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
)

const stepsOfASchedule = 40

// TestRandomSchedules runs whole nodes under random schedules of faults: real nodes, meshes and
// data directories, a network in memory that fails as a kernel's does, disks that fail, hang, are
// slow, fill up and tear writes, processes that are stopped, killed, closed without waiting and
// started again, and guarded work that does not stop when it is told. A judge looks at all nodes
// before every step that any of them takes. In half of the schedules the nodes have a second
// election. A run that breaks a rule is shortened, and printed together with the seed and the
// command that runs it again. CHAOS_SEEDS says how many schedules are played.
func TestRandomSchedules(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // so that a seed gives one run
	seeds, err := newSeeds(chaosSeeds(t, 8))
	require.NoError(t, err)
	broken, played := map[string][]uint64{}, map[string]int{}
	defer func() { t.Logf("%d schedules: %v", len(seeds), played) }()
	for _, seed := range seeds {
		t.Logf("seed %d", seed)
		s := draw(seed, stepsOfASchedule)
		for _, step := range s.steps {
			played[step.op]++
		}
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

// TestASeedGivesOneRun plays schedules twice, with one election and no record. Nothing random is
// left but what the runtime draws for things that happen at one moment, so nearly all are equal; if
// anything else drew from another source, hardly one would be. With more, much more happens at one
// moment, as when a link of both ends.
func TestASeedGivesOneRun(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	if raced() {
		t.Skip("with the race detector goroutines run in random order")
	}
	seeds, err := newSeeds(max(20, chaosSeeds(t, 0)/10))
	require.NoError(t, err)
	equal, differ := 0, ""
	for _, seed := range seeds {
		s := draw(seed, stepsOfASchedule)
		s.elections, s.keeps = s.elections[:1], false
		_, one := play(t, s)
		_, two := play(t, s)
		if slices.Equal(one, two) {
			equal++
			continue
		}
		at := 0
		for at < min(len(one), len(two))-1 && one[at] == two[at] {
			at++
		}
		differ += fmt.Sprintf("seed %d:\n%s\n%s\n", seed, one[at], two[at])
	}
	t.Logf("%d of %d schedules gave one run; not so\n%s", equal, len(seeds), differ)
	if len(seeds) > 1 {
		require.GreaterOrEqual(t, 2*equal, len(seeds))
	}
}

func raced() bool {
	build, _ := debug.ReadBuildInfo()
	return build != nil && slices.Contains(build.Settings, debug.BuildSetting{Key: "-race",
		Value: "true"})
}

func chaosSeeds(t *testing.T, otherwise int) int {
	n, err := strconv.Atoi(cmp.Or(os.Getenv("CHAOS_SEEDS"), strconv.Itoa(otherwise)))
	require.NoError(t, err, "CHAOS_SEEDS")
	return n
}

// report says how a schedule broke a rule, after it has shortened it.
func report(t *testing.T, s schedule, v *violation, log []string) string {
	least, leastLog := shorten(t, s, v.rule)
	if leastLog != nil {
		log = leastLog
	}
	const lines = 60
	return fmt.Sprintf("%s: %s\nrun it again: %s=%d go test -run %s ./cluster/clustertest\n"+
		"%d of %d steps are enough:\n%v\nthe end of the log:\n%s",
		v.rule, v.text, seedVariable, s.seed, "TestRandomSchedules", len(least.steps),
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
