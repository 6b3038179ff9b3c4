package replay

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/internal/lab/report"
	"github.com/bmqelect/bmqelect/internal/lab/scenario"
	"github.com/bmqelect/bmqelect/internal/lab/verdict"
)

var rewrite = flag.Bool("update", false, "rewrite the golden traces")

const scenarioFolder = "../../../testdata/scenarios"

// moreSeeds is under how many seeds after its own every file is played.
const moreSeeds = 20

// scenarios loads every file.
func scenarios(t *testing.T) []*scenario.Scenario {
	t.Helper()
	files, err := scenario.Find(scenarioFolder)
	require.NoError(t, err)
	var all []*scenario.Scenario
	for _, file := range files {
		sc, err := scenario.Load(file)
		require.NoError(t, err)
		all = append(all, sc)
	}
	return all
}

// failure tells what did not hold in a run and how to see it again, "" if all held.
func failure(sc *scenario.Scenario, seed uint64) string {
	run, err := Simulate(sc, Options{Seed: seed})
	if err != nil {
		return fmt.Sprintf("seed %d: %v", seed, err)
	}
	if run.Held() {
		return ""
	}
	wrong := append([]string{}, run.History.Broken...)
	wrong = append(wrong, run.History.Problems...)
	for _, v := range run.Verdicts {
		if !v.Held {
			wrong = append(wrong, fmt.Sprintf("expected %s, but at %s: %s", v.Text, v.At, v.Seen))
		}
	}
	return fmt.Sprintf("seed %d: %s\nto see it: bmqnode replay --seed %d testdata/scenarios/%s",
		seed, strings.Join(wrong, "\n"), seed, filepath.Base(sc.File))
}

func TestScenarioFilesHold(t *testing.T) {
	for _, sc := range scenarios(t) {
		t.Run(sc.Name, func(t *testing.T) {
			t.Parallel()
			for seed := sc.Seed; seed <= sc.Seed+moreSeeds; seed++ {
				require.Empty(t, failure(sc, seed))
			}
		})
	}
}

func TestScenarioFilesSayWhatTheyAre(t *testing.T) {
	for _, sc := range scenarios(t) {
		require.Equal(t, filepath.Base(sc.File), sc.Name+".yaml")
		require.NotEmpty(t, sc.About, "%s: about says what it teaches", sc.File)
		require.NotEmpty(t, sc.Source, "%s: source says where the case comes from", sc.File)
		require.NotEmpty(t, sc.Expect, "%s: nothing is expected", sc.File)
	}
}

// trace is all that is known of a run, as bytes.
func trace(t *testing.T, sc *scenario.Scenario, seed uint64, arrows bool) []byte {
	t.Helper()
	run, err := Simulate(sc, Options{Seed: seed, Arrows: arrows})
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, report.JSON(&out, []verdict.Run{run}))
	return out.Bytes()
}

func TestTheSameSeedGivesTheSameHistory(t *testing.T) {
	for _, sc := range scenarios(t) {
		t.Run(sc.Name, func(t *testing.T) {
			t.Parallel()
			first := trace(t, sc, sc.Seed, true)
			require.True(t, bytes.Equal(first, trace(t, sc, sc.Seed, true)), "two runs of seed %d differ",
				sc.Seed)
			require.False(t, bytes.Equal(first, trace(t, sc, sc.Seed+1, true)),
				"the seed makes no difference")
		})
	}
}

// Golden traces are the same on every machine and in every version of Go.
func TestGoldenTraces(t *testing.T) {
	for _, name := range []string{"inflated-term", "leader-ping-pong",
		"voter-restarts-after-its-vote"} {
		t.Run(name, func(t *testing.T) {
			sc, err := scenario.Load(filepath.Join(scenarioFolder, name+".yaml"))
			require.NoError(t, err)
			got, path := trace(t, sc, sc.Seed, false), filepath.Join("testdata", name+".jsonl")
			if *rewrite {
				require.NoError(t, os.WriteFile(path, got, 0o644))
			}
			want, err := os.ReadFile(path)
			require.NoError(t, err, "go test -update writes it")
			sameLines(t, string(want), string(got))
		})
	}
}

// sameLines shows the first line that differs, not both texts.
func sameLines(t *testing.T, want, got string) {
	t.Helper()
	wants, gots := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range min(len(wants), len(gots)) {
		require.Equal(t, wants[i], gots[i], "line %d; go test -update if that is right", i+1)
	}
	require.Len(t, gots, len(wants))
}
