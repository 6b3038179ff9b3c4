package report

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/history"
	"github.com/bmqelect/bmqelect/lsn"
)

func TestPercentSaysAllOnlyOfAll(t *testing.T) {
	for share, want := range map[float64]string{1: "100.00 %", 0.999999: "99.99 %", 0.5: "50.00 %",
		0: "0.00 %"} {
		require.Equal(t, want, percent(share))
	}
}

func TestSecondsAreWrittenAsShortAsTheyAre(t *testing.T) {
	for d, want := range map[time.Duration]string{0: "0s", 2538 * time.Millisecond: "2.538s",
		12050 * time.Millisecond: "12.05s", time.Hour: "3600s", 1499 * time.Microsecond: "0.001s"} {
		require.Equal(t, want, seconds(d))
	}
}

func TestCountSeparatesThousands(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567",
		-1234: "-1,234", -123: "-123"} {
		require.Equal(t, want, count(n))
	}
	require.Equal(t, "9,223,372,036,854,775,807", count(lsn.MaxTerm))
}

func TestClipAndPadCountRunes(t *testing.T) {
	require.Equal(t, "ab~", clip("abcd", 3))
	require.Equal(t, "\u00e4\u00f6\u00fc", clip("\u00e4\u00f6\u00fc", 3))
	require.Equal(t, "\u00e4  ", pad("\u00e4", 3))
	require.Equal(t, "  \u00e4", padLeft("\u00e4", 3))
}

func TestTicksAreRoundAndFew(t *testing.T) {
	for _, end := range []time.Duration{1, 30 * time.Millisecond, time.Second, time.Minute, time.Hour,
		20 * 24 * time.Hour} {
		at := ticks(end, 20)
		require.NotEmpty(t, at, end)
		require.LessOrEqual(t, len(at), 20, end)
		require.Zero(t, at[0])
	}
	require.Equal(t, []time.Duration{0, 20 * time.Second, 40 * time.Second}, ticks(time.Minute, 5))
}

func TestPiecesEndWithTheLeaseAndTheRun(t *testing.T) {
	led := history.Span{From: -5, To: 30, Process: history.Up, Role: elector.Leader, Leader: "a",
		LeaseUntil: 20}
	for name, c := range map[string]struct {
		lease, end time.Duration
		want       []state
		change     time.Duration
	}{
		"within":  {20, 30, []state{leader, expired}, 20},
		"before":  {-1, 30, []state{expired}, 0},
		"after":   {31, 30, []state{leader}, 0},
		"forever": {history.Forever, 30, []state{leader}, 0},
		"cut off": {20, 10, []state{leader}, 0},
	} {
		led.LeaseUntil = c.lease
		got := pieces(&history.Lane{Node: "a", Spans: []history.Span{led}}, nil, c.end)
		require.Len(t, got, len(c.want), name)
		for i, p := range got {
			require.Equal(t, c.want[i], p.state, name)
		}
		require.Zero(t, got[0].From, name)
		require.Equal(t, c.change, got[len(got)-1].From, name)
		require.Equal(t, c.end, got[len(got)-1].To, name)
	}
}

// Where another node leads beside it, a leader is a rival, also while it is paused; without a
// lease it is none.
func TestPiecesShowRivals(t *testing.T) {
	led := history.Span{From: -5, To: 30, Process: history.Up, Role: elector.Leader, Leader: "a",
		LeaseUntil: 20}
	reigns := []reign{{0, 5, []history.NodeID{"a"}}, {5, 10, []history.NodeID{"a", "b"}},
		{10, 12, []history.NodeID{"b", "a", "c"}}, {12, 25, nil}, {25, 40, []history.NodeID{"b", "c"}}}
	for process, want := range map[history.Process][]state{
		history.Up:     {leader, rival, rival, leader, expired},
		history.Paused: {paused, rival, rival, paused},
	} {
		led.Process = process
		var got []state
		var tips []string
		for _, p := range pieces(&history.Lane{Node: "a", Spans: []history.Span{led}}, reigns, 30) {
			got = append(got, p.state)
			tips = append(tips, p.among.String())
		}
		require.Equal(t, want, got)
		require.Equal(t, []string{"two leaders: a, b", "3 leaders: b, a, c"}, tips[1:3])
	}
}

func TestStates(t *testing.T) {
	for want, s := range map[state]history.Span{
		down: {},
		paused: {Process: history.Paused, Role: elector.Leader, Leader: "a",
			LeaseUntil: history.Forever},
		leader:    {Process: history.Up, Role: elector.Leader, Leader: "a"},
		candidate: {Process: history.Up, Role: elector.Candidate},
		follower:  {Process: history.Up, Role: elector.Follower, Leader: "a"},
		alone:     {Process: history.Up, Role: elector.Follower},
	} {
		require.Equal(t, want, stateOf(s), looks[want].Name)
	}
	require.Equal(t, down, stateOf(history.Span{Process: history.Up, Role: elector.Dormant}),
		"not started")
}

func TestBandsNameWhatIsCut(t *testing.T) {
	lanes := []history.Lane{{Node: "a"}, {Node: "b"}, {Node: "c"}}
	cut := func(from, to history.NodeID, start, end time.Duration) history.Cut {
		return history.Cut{From: from, To: to, Start: start, End: end}
	}
	for name, c := range map[string]struct {
		cuts []history.Cut
		want []string
	}{
		"none":      {nil, nil},
		"one way":   {[]history.Cut{cut("b", "a", 1, 2)}, []string{"b->a"}},
		"both ways": {[]history.Cut{cut("b", "a", 1, 2), cut("a", "b", 1, 2)}, []string{"a-b"}},
		"one by one": {[]history.Cut{cut("a", "b", 1, 4), cut("b", "c", 2, 3)},
			[]string{"a->b", "a->b, b->c", "a->b"}},
		"with a pause": {[]history.Cut{cut("a", "b", 1, 2), cut("a", "b", 3, history.Forever)},
			[]string{"a->b", "a->b"}},
		"twice": {[]history.Cut{cut("a", "b", 1, 4), cut("a", "b", 2, 3)},
			[]string{"a->b", "a->b", "a->b"}},
		"of no length": {[]history.Cut{cut("a", "b", 2, 2)}, nil},
		"before":       {[]history.Cut{cut("a", "b", -2, -1)}, nil},
		"isolated": {[]history.Cut{
			cut("a", "b", 1, 2), cut("b", "a", 1, 2), cut("a", "c", 1, 2), cut("c", "a", 1, 2),
			cut("b", "c", 1, 2),
		}, []string{"a-*, b->c"}},
	} {
		h := &history.History{Lanes: lanes, Cuts: c.cuts, Duration: 10}
		var got []string
		for _, b := range bands(h) {
			got = append(got, b.text)
		}
		require.Equal(t, c.want, got, name)
	}
}

func TestPercentiles(t *testing.T) {
	hundred := make([]int, 100)
	for i := range hundred {
		hundred[i] = i + 1
	}
	for share, want := range map[int]int{1: 1, 50: 50, 90: 90, 99: 99, 100: 100} {
		require.Equal(t, want, percentile(hundred, share))
	}
	require.Equal(t, 7, percentile([]int{7}, 50))
	require.Equal(t, 8, percentile([]int{7, 8}, 99))
}
