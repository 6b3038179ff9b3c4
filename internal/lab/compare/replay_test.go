package compare

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/internal/lab/scenario"
)

const scenarios = "../../../testdata/scenarios/"

// write writes a scenario file and returns its path.
func write(t *testing.T, name, text string) string {
	path := filepath.Join(t.TempDir(), name+".yaml")
	head := "name: " + name + "\nabout: a test\nsource: a test\n"
	require.NoError(t, os.WriteFile(path, []byte(head+text), 0o600))
	return path
}

const briefCrash = `
nodes: [a, b, c]
elector: {initial_wait: 1600ms, max_random_wait: 500ms, lease: 1500ms}
begin: {leader: a, term: 5}
duration: 8s
timeline:
  - {at: 2s, crash: [a]}
  - {at: 4s, restart: [a]}
expect:
  - {to: 2s, leader: a, term: 5}
  - {at: 7900ms, leader: [b, c], followers: [a]}
`

// play plays files with options that differ from the command's defaults by change.
func play(
	t *testing.T, change func(*ReplayOptions), paths ...string,
) (out, errs string, err error) {
	t.Helper()
	var o, e bytes.Buffer
	options := ReplayOptions{Options: Options{Out: &o, Err: &e}, Runs: 1, Jobs: 4}
	options.Variants = []string{"scouting=true", "scouting=false"}
	change(&options)
	if err := options.Check(); err != nil {
		return "", "", err
	}
	b, err := Load(options, paths...)
	if err == nil {
		err = b.Play(t.Context())
	}
	return o.String(), e.String(), err
}

func plainly(*ReplayOptions) {}

func TestWhatBecomesOfAReplay(t *testing.T) {
	t.Parallel()
	good := write(t, "good", briefCrash)
	unmet := write(t, "unmet", briefCrash+"  - {to: 8s, leader: a}\n")
	wrong := write(t, "wrong", strings.Replace(briefCrash, "crash: [a]", "crash: [x]", 1))
	pingPong, off := scenarios+"leader-ping-pong.yaml", false
	for name, c := range map[string]struct {
		change func(*ReplayOptions)
		file   string
		out    string
		err    string
	}{
		"all held":        {plainly, good, "ok   leader a in term 5 throughout 0s..2s", ""},
		"something unmet": {plainly, unmet, "FAIL leader a throughout 0s..8s", ErrUnmet.Error()},
		"a wrong file":    {plainly, wrong, "", "wrong.yaml:10:22: "},
		"no such file":    {plainly, "nowhere.yaml", "", "nowhere.yaml"},
		"an empty folder": {plainly, t.TempDir(), "", "no file in"},
		"unknown setting": {func(o *ReplayOptions) { o.Set = []string{"elector.leas=1s"} }, good, "",
			"did you mean elector.lease?"},
		"a setting": {func(o *ReplayOptions) { o.Set = []string{"elector.max_random_wait=400ms"} },
			good, "ok ", ""},
		"without scouting": {func(o *ReplayOptions) { o.Scouting = &off }, pingPong,
			"FAIL leader changes exactly 0", ErrUnmet.Error()},
		"a comparison": {func(o *ReplayOptions) { o.Compare = true }, pingPong, "needless demotions", ""},
		"many runs":    {func(o *ReplayOptions) { o.Runs = 50 }, good, "good: 50 of 50 runs held", ""},
		"many, one bad": {func(o *ReplayOptions) { o.Runs = 5 }, unmet, "unmet: 0 of 5 runs held",
			ErrUnmet.Error()},
		"unknown format": {func(o *ReplayOptions) { o.Format = "pdf" }, good, "",
			`--format is "pdf", but must be text`},
		"an unknown ending": {func(o *ReplayOptions) { o.Output = "x.pdf" }, good, "",
			`--output is "x.pdf", but must end in .txt, .json, .jsonl, .svg or .html, or go with --format`},
		"two formats": {func(o *ReplayOptions) { o.Format, o.Output = "svg", "x.html" }, good, "",
			`--format is svg, but --output is "x.html"`},
		"runs in a page": {func(o *ReplayOptions) { o.Runs, o.Output = 2, "x.html" }, good, "",
			"--runs goes with the simulator"},
		"a step less": {func(o *ReplayOptions) { o.Reduced.Drop = []int{2} }, unmet,
			"leader changes       1", ""},
		"a step that is not there": {func(o *ReplayOptions) { o.Reduced.Drop = []int{3} }, good, "",
			"good.yaml: --drop is 3, but the steps of the timeline are 1 to 2"},
		"a node that is not there": {func(o *ReplayOptions) {
			o.Reduced.Without = []scenario.NodeID{"z"}
		}, good, "", `good.yaml: --without is "z", but the nodes are a, b, c`},
		"no runs": {func(o *ReplayOptions) { o.Runs = 0 }, good, "", "--runs is 0, but must be 1 to"},
		"too many files": {func(o *ReplayOptions) { o.Jobs = 33 }, good, "",
			"--jobs is 33, but must be 1 to 32"},
		"runs of a format": {func(o *ReplayOptions) { o.Runs, o.Format = 2, "svg" }, good, "",
			"--runs goes with the simulator"},
		"another algorithm": {func(o *ReplayOptions) { o.Algorithms = []string{"bmqelect-without-scouting"} },
			pingPong, "FAIL leader changes exactly 0", ErrUnmet.Error()},
		"which is named": {func(o *ReplayOptions) { o.Algorithms = []string{"bmqelect-without-scouting"} },
			pingPong, "Here bmqelect-without-scouting plays", ErrUnmet.Error()},
		"many runs of it": {func(o *ReplayOptions) { o.Algorithms, o.Runs = []string{"bmqelect"}, 5 },
			good, "good: 5 of 5 runs held", ""},
		"many bad runs of it": {func(o *ReplayOptions) {
			o.Algorithms, o.Runs = []string{"bmqelect-without-scouting"}, 2
		}, pingPong, "--seed 1 --algorithm bmqelect-without-scouting", ErrUnmet.Error()},
		"two algorithms": {func(o *ReplayOptions) {
			o.Compare, o.Algorithms = true, []string{"bmqelect", "bmqelect-without-scouting"}
		}, pingPong, "== bmqelect-without-scouting ==", ""},
		"two without comparison": {func(o *ReplayOptions) { o.Algorithms = []string{"bmqelect", "bmqelect"} },
			good, "", "--algorithm names several"},
		"an unknown algorithm": {func(o *ReplayOptions) { o.Algorithms = []string{"paxos"} }, good, "",
			`--algorithm: "paxos" is no algorithm, but these are: bmqelect, bmqelect-without-scouting`},
		"an algorithm, live": {func(o *ReplayOptions) { o.Live, o.Algorithms = true, []string{"bmqelect"} },
			good, "", "not with --live: real processes run this elector only"},
		"a port too high": {func(o *ReplayOptions) { o.Live, o.BasePort = true, 33_400 }, good, "",
			"--base-port is 33400, but must be 1024 to 30000"},
		"a seed, live": {func(o *ReplayOptions) { o.Live, o.Seed = true, new(uint64) }, good, "",
			"--seed has no meaning with --live"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, _, err := play(t, c.change, c.file)
			require.Contains(t, out, c.out)
			if c.err == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.err)
			}
		})
	}
}

func ptr(seed uint64) *uint64 { return &seed }

func TestReportsOfSeveralFiles(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "reports")
	files := []string{scenarios + "chained.yaml", scenarios + "one-node.yaml"}
	_, _, err := play(t, func(o *ReplayOptions) { o.Format, o.Output = "html", dir }, files...)
	require.NoError(t, err)
	for _, name := range []string{"chained", "one-node"} {
		page, err := os.ReadFile(filepath.Join(dir, name+".html"))
		require.NoError(t, err)
		require.Contains(t, string(page), "<!doctype html>")
	}
	unmet := write(t, "unmet", briefCrash+"  - {to: 8s, leader: a}\n")
	out, _, err := play(t, plainly, append(files, unmet)...)
	require.ErrorIs(t, err, ErrUnmet)
	require.Contains(t, out, "FAIL leader a throughout 0s..8s", "the one that failed is shown in full")
	require.NotContains(t, out, "ok   leader a throughout", "the others are a line each")
}

// A lost disk lets a node vote twice: the one thing that breaks the protocol. The least
// that breaks it is found, and what is printed shows it again.
func TestABrokenInvariantIsShrunkAndCanBeReplayed(t *testing.T) {
	t.Parallel()
	file := write(t, "forgotten-vote", `
nodes: [a, b, c, d]
elector: {quorum: 3}
duration: 120s
timeline:
  - {at: 0s, isolate: [d]}
  - {at: 30s, partition: [[a], [b, c, d]]}
  - {at: 30s, crash: [b, c]}
  - {at: 31s, restart: [b, c], wipe: true}
  - {at: 90s, heal: all}
`)
	hint := regexp.MustCompile(
		`bmqnode replay (\S+) --seed (\d+) --drop ([\d,]+)(?: --without (\S+))?`)
	for seed := uint64(1); seed < 100; seed++ {
		_, errs, err := play(t, func(o *ReplayOptions) { o.Seed = ptr(seed) }, file)
		if err == nil {
			continue
		}
		require.ErrorIs(t, err, ErrUnmet)
		require.Contains(t, errs, "an invariant is broken")
		require.Contains(t, errs, "I1 violated")
		typed := hint.FindStringSubmatch(errs)
		require.NotNil(t, typed, errs)
		require.Equal(t, []string{file, fmt.Sprint(seed)}, typed[1:3])
		out, errs, err := play(t, func(o *ReplayOptions) {
			o.Seed = ptr(seed)
			for n := range strings.SplitSeq(typed[3], ",") {
				step, err := strconv.Atoi(n)
				require.NoError(t, err)
				o.Reduced.Drop = append(o.Reduced.Drop, step)
			}
			for n := range strings.FieldsFuncSeq(typed[4], func(r rune) bool { return r == ',' }) {
				o.Reduced.Without = append(o.Reduced.Without, scenario.NodeID(n))
			}
		}, file)
		require.ErrorIs(t, err, ErrUnmet)
		require.Contains(t, out, "I1 violated")
		require.Contains(t, errs, "expectations are not judged: only a part is played")
		return
	}
	t.Fatal("no seed broke anything")
}

// The ending of a file says what it shall hold; with --format, any name will do.
func TestAFileIsWhatItsEndingSays(t *testing.T) {
	t.Parallel()
	good, dir := write(t, "good", briefCrash), t.TempDir()
	for name, begin := range map[string]string{"a.html": "<!doctype html>", "a.svg": "<svg",
		"a.json": `{"type":"run"`, "a.jsonl": `{"type":"run"`, "a.txt": "good\n", "a": "good\n"} {
		path := filepath.Join(dir, name)
		_, _, err := play(t, func(o *ReplayOptions) { o.Output = path }, good)
		require.NoError(t, err)
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, begin, string(text[:len(begin)]), name)
	}
	path := filepath.Join(dir, "a.log")
	_, _, err := play(t, func(o *ReplayOptions) { o.Format, o.Output = "json", path }, good)
	require.NoError(t, err)
}
