package compare

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/internal/lab/algorithm/etcdlease"
	"github.com/bmqelect/bmqelect/internal/lab/algorithm/ours"
	"github.com/bmqelect/bmqelect/internal/lab/replay"
	"github.com/bmqelect/bmqelect/internal/lab/scenario"
)

const repository = "../../.."

// kept are the rows of the file of figures.
func kept(t *testing.T) []Row {
	text, err := os.ReadFile(filepath.Join(repository, figures))
	require.NoError(t, err)
	rows, err := Read(bytes.NewReader(text))
	require.NoError(t, err)
	return rows
}

// The page and its pictures are what the file of figures says, and what the scenarios show
// that the page cites.
func TestThePageIsWhatTheFileSays(t *testing.T) {
	rows := kept(t)
	files, err := Files(rows, repository)
	require.NoError(t, err)
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join(repository, name))
		require.NoError(t, err)
		require.Equal(t, string(want), string(got),
			"go run ./cmd/bmqnode lab --redraw -o . writes %s", name)
	}
}

// The file has every algorithm in every topology on every network, as of now.
func TestTheFileHasAll(t *testing.T) {
	rows := kept(t)
	var want, got []string
	for _, c := range Cells(Topologies, Networks, replay.Algorithms()) {
		want = append(want, c.String())
	}
	for _, r := range rows {
		got = append(got, r.String())
		require.GreaterOrEqual(t, r.Seeds, LeastSeeds)
	}
	require.ElementsMatch(t, want, got, "make lab plays them")
}

// A cell of every fourth algorithm, played anew, shows what the file says of it.
func TestTheFileIsWhatIsPlayed(t *testing.T) {
	rows := kept(t)
	for i, c := range Cells([]Topology{topology(t, "chain-3")}, Networks[:1], replay.Algorithms()) {
		at := slices.IndexFunc(rows, func(r Row) bool { return r.String() == c.String() })
		if i%4 != 0 {
			continue
		}
		played, err := Play(t.Context(), []Cell{c}, rows[at].Seeds, nil)
		require.NoError(t, err)
		for name, e := range rows[at].Values {
			require.InDelta(t, played[0].Values[name].Mean, e.Mean, 1e-4, "%s, %s: make lab", c, name)
		}
	}
}

// The page says of the algorithms that are faster than ours with equal timers where a leader is cut
// off: each of them has two leaders on such a network, if not in that topology.
func TestTheFasterHaveTwoLeaders(t *testing.T) {
	rows := kept(t)
	recovery := slices.IndexFunc(Metrics, func(m Metric) bool { return m.Name == "recovery_s" })
	two, faster := map[string]bool{}, 0
	for _, r := range equalRows(rows) {
		if r.Topology == "leader-isolated" && r.Values["overlap_s"].Mean > 0 {
			two[r.Network+r.Algorithm] = true
		}
	}
	for _, own := range equalRows(rows) {
		if own.Algorithm != ours.Elector.Name ||
			own.Topology != "leader-isolated" && own.Topology != "constrained" {
			continue
		}
		require.Zero(t, own.Values["overlap_s"].Mean)
		for _, r := range rows {
			if _, is := own.beaten([]Row{r}, Metrics[recovery]); is {
				here := r.Topology == "constrained" && r.Values["overlap_s"].Mean > 0
				require.True(t, here || two[r.Network+r.Algorithm], r)
				faster++
			}
		}
	}
	require.Positive(t, faster)
}

// The page says of the algorithms that recover sooner where the preferred node restarts: except
// for ours without scouting, they seldom have anything to recover from.
func TestTheFasterHadAnotherLeader(t *testing.T) {
	rows := kept(t)
	for _, own := range rows {
		if own.Algorithm != replay.AlgorithmNames()[0] || own.Topology != "restart-preferred" {
			continue
		}
		for _, r := range rows {
			if r.Topology == own.Topology && r.Network == own.Network && r.Own == own.Own &&
				r.Algorithm != ours.WithoutScouting.Name &&
				r.Values["recovery_s"].Mean < own.Values["recovery_s"].Mean {
				require.Less(t, r.Values["elections"].Mean, own.Values["elections"].Mean/2, r)
			}
		}
	}
}

// Every algorithm but ours has a scenario on the page that breaks it, and costs ours a fifth at
// most.
func TestEveryOtherAlgorithmIsBroken(t *testing.T) {
	broken := map[string]bool{}
	for _, e := range examples {
		broken[e.algorithm] = true
		theirs, _, err := e.of(e.algorithm, repository)
		require.NoError(t, err)
		own, _, err := e.of(ours.Elector.Name, repository)
		require.NoError(t, err)
		require.LessOrEqual(t, own, theirs/5, "%s in %s", e.algorithm, e.scenario)
	}
	for _, name := range replay.AlgorithmNames()[1:] {
		require.True(t, broken[name], name)
	}
}

// A partition cuts the store off from the minority alone.
func TestAStoreIsOnTheSideOfTheMajority(t *testing.T) {
	sc, err := scenario.Load(
		filepath.Join(repository, "testdata/scenarios/minority-partition-with-leader.yaml"))
	require.NoError(t, err)
	run, err := replay.Simulate(sc, replay.Options{Seed: 1, Algorithm: etcdlease.EtcdLease})
	require.NoError(t, err)
	require.Less(t, run.History.Summarize(0, sc.Duration).Leaderless, 5*time.Second)
}

func TestWhatLabWrites(t *testing.T) {
	for name, c := range map[string]struct {
		o    LabOptions
		want string // of the output, or of the error
		err  bool
	}{
		"a part": {LabOptions{Seeds: 2, Topologies: []string{"chain-3"},
			Options: Options{Algorithms: replay.AlgorithmNames()[:2]}},
			"bmqelect-without-scouting", false},
		"no such topology": {LabOptions{Seeds: 2, Topologies: []string{"star"}},
			`--topology: "star" is none, but these are: whole, process-crash`, true},
		"no such algorithm": {LabOptions{Seeds: 2, Options: Options{Algorithms: []string{"paxos"}}},
			`--algorithm: "paxos" is no algorithm, but these are: bmqelect`, true},
		"no seeds": {LabOptions{}, "--seeds is 0, but must be 1 to 1000000", true},
		"too few to be kept": {LabOptions{Seeds: 199, Options: Options{Output: "x"}},
			"--output is for the whole comparison", true},
		"a part to be kept": {
			LabOptions{Seeds: 200, Options: Options{Output: "x"}, Topologies: []string{"whole"}},
			"--output is for the whole comparison", true},
		"nothing to redraw": {LabOptions{Seeds: 200, Redraw: true}, "--redraw needs --output", true},
	} {
		t.Run(name, func(t *testing.T) {
			var out, progress bytes.Buffer
			c.o.Out, c.o.Err = &out, &progress
			err := c.o.Check()
			if c.err {
				require.ErrorContains(t, err, c.want)
				return
			}
			require.NoError(t, err)
			require.NoError(t, Lab(t.Context(), c.o))
			require.Contains(t, out.String(), c.want)
			require.Contains(t, progress.String(), "6 of 6 cells, of 2 runs each")
		})
	}
}

// A redraw into another folder gives the same files.
func TestRedraw(t *testing.T) {
	dir := t.TempDir()
	for _, folder := range []string{"testdata", "docs/pictures"} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, folder), 0o755))
	}
	from, err := filepath.Abs(filepath.Join(repository, "testdata/scenarios"))
	require.NoError(t, err)
	require.NoError(t, os.Symlink(from, filepath.Join(dir, "testdata/scenarios")))
	text, err := os.ReadFile(filepath.Join(repository, figures))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, figures), text, 0o644))
	require.NoError(t, Lab(t.Context(), LabOptions{Redraw: true,
		Options: Options{Output: dir, Out: io.Discard}}))
	got, err := os.ReadFile(filepath.Join(dir, page))
	require.NoError(t, err)
	want, err := os.ReadFile(filepath.Join(repository, page))
	require.NoError(t, err)
	require.Equal(t, string(want), string(got))
}
