package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/internal/peers/node"
)

// Three processes of ours, without rights: the application of a leader works, until it is stuck.
func TestGrayFailuresOfOurs(t *testing.T) {
	t.Parallel()
	c := columns("article")[:1]
	c[0].period = 200 * time.Millisecond
	g := &gray{lasts: 2 * time.Second, runs: 1, columns: c, cells: map[string][][]played{},
		lacking: map[need]string{needsNetwork: "no root"}}
	for _, f := range failures {
		if slices.Contains([]string{"none", "deadlock", "host gone"}, f.name) {
			g.failures = append(g.failures, f)
		}
	}
	require.NoError(t, g.run(t.Context()))
	require.Equal(t, []string{"host gone: no root"}, g.skipped)
	require.Contains(t, g.table(), "|host gone| skipped|\n")
	calm, stuck := g.cells["none"][0][0], g.cells["deadlock"][0][0]
	require.False(t, calm.never)
	require.Positive(t, calm.share)
	require.Positive(t, calm.flushes[0])
	require.Equal(t, stuck.moves == 0, stuck.never, "only another leader's application works")
}

func TestChooseFailures(t *testing.T) {
	all, err := chooseFailures("")
	require.NoError(t, err)
	require.Len(t, all, len(failures))
	some, err := chooseFailures("5 % loss, none")
	require.NoError(t, err)
	require.Equal(t, []string{"5 % loss", "none"}, []string{some[0].name, some[1].name})
	_, err = chooseFailures("none,fire")
	require.ErrorContains(t, err, `no failure "fire"; there are none, disk hangs,`)
}

// items are items of work of 10 ms every 50 ms, from a time to another in ms.
func items(name string, from, to int64) (all []node.Report) {
	for at := from; at < to; at += 50 {
		all = append(all, node.Report{From: at * 1e6, To: (at + 10) * 1e6, Text: name})
	}
	return all
}

func TestJudge(t *testing.T) {
	const s = 1000 // ms
	for name, test := range map[string]struct {
		worked []node.Report
		want   string
	}{
		"all the time":       {items("n1", 0, 10*s), "goes on"},
		"an early gap":       {append(items("n1", 0, 2*s), items("n2", 3*s, 10*s)...), "1.1 s"},
		"from the start":     {items("n2", 4*s, 10*s), "4.0 s"},
		"never":              {items("n1", 0, 5*s), "**never**"},
		"nothing":            {nil, "**never**"},
		"before and after":   {append(items("n1", -s, 0), items("n1", 10*s, 12*s)...), "**never**"},
		"a pause at the end": {items("n1", 0, 8*s), "2.0 s"},
		"two at once": {append(items("n1", 0, 6*s), items("n2", 4*s, 10*s)...),
			"goes on, two at once for 2.0 s"},
		"two in turn": {append(items("n1", 0, 5*s), items("n2", 5*s, 10*s)...), "goes on"},
		"there and back": {append(append(items("n1", 0, 3*s), items("n2", 3*s, 6*s)...),
			items("n1", 6*s, 10*s)...), "goes on"},
		"two for a short time": {append(items("n1", 0, 5*s), items("n2", 5*s-200, 10*s)...), "goes on"},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.want, failure{}.cell([]played{judge(test.worked, 0, 10*s*1e6)}))
		})
	}
}

func TestOnlyWorkDuringTheFailureCounts(t *testing.T) {
	p := judge(append(items("n1", -1000, 0), items("n1", 5000, 12_000)...), 0, 10_000*1e6)
	require.InDelta(t, 0.5, p.share, 0.01)
}

func TestCellsAreMedians(t *testing.T) {
	p := func(gap time.Duration, moves int, share float64) played {
		return played{lasts: 10 * time.Second, gap: gap, moves: moves, share: share}
	}
	runs := []played{p(3*time.Second, 5, 0.7), p(time.Second, 0, 0.2), p(2*time.Second, 3, 0.3)}
	require.Equal(t, "2.0 s, 2 needless, 30 % of the work", failure{moves: 1}.cell(runs))
	runs[1].never, runs[2].never = true, true
	require.Equal(t, "**never**, 3 needless", failure{}.cell(runs))
	ended := played{lasts: 10 * time.Second, share: 1, moves: 1, ended: 1}
	require.Equal(t, "goes on, the process ended", failure{moves: 1}.cell([]played{ended}))
}

func TestRewriteKeepsWhatPeopleWrote(t *testing.T) {
	g := &gray{lasts: 40 * time.Second, runs: 3, columns: columns("lan"),
		loads: []string{"0.1", "2.0"}, failures: failures[:2],
		skipped: []string{"disk hangs: no FUSE"}, page: filepath.Join(t.TempDir(), "page"),
		cells: map[string][][]played{
			"none": {{{share: 1}}, {{share: 1}}, {{share: 1, moves: 2}}, nil},
		}}
	old := "# A\n" + tableBegins + "old\n" + tableEnds + "B\n"
	require.NoError(t, os.WriteFile(g.page, []byte(old), 0o600))
	require.NoError(t, g.rewrite())
	text, err := os.ReadFile(g.page)
	require.NoError(t, err)
	require.Regexp(t, "^# A\n"+tableBegins+"\n", string(text))
	require.Regexp(t, "\n\n"+tableEnds+"B\n$", string(text))
	for _, line := range []string{
		"load average 0.1 at the start, 2.0 at the end;", "|failure| bmqelect| with probes| raft| etcd|",
		"|none| goes on| goes on| goes on, 2 needless| skipped|",
		"|disk hangs| skipped| skipped| skipped| skipped|", "Not played: disk hangs: no FUSE",
	} {
		require.Contains(t, string(text), line+"\n")
	}
	require.Contains(t, string(text), "each failure for 40s, median of 3 runs;")
	require.NotContains(t, string(text), "old")
	require.NoError(t, os.WriteFile(g.page, []byte("# A\n"), 0o600))
	require.ErrorContains(t, g.rewrite(), "has not the lines")
}

// The page has a row for each failure, and explains it.
func TestThePageIsOfTheseFailures(t *testing.T) {
	text, err := os.ReadFile("../../docs/gray-failures.md")
	require.NoError(t, err)
	for _, f := range failures {
		require.Contains(t, string(text), "\n|"+f.name+"| ")
		require.Contains(t, string(text), "**"+f.name+"**: "+f.words)
	}
}
