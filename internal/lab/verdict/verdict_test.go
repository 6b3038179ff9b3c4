package verdict

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/elector"
	"github.com/bmqelect/bmqelect/internal/lab/history"
	"github.com/bmqelect/bmqelect/internal/lab/scenario"
	"github.com/bmqelect/bmqelect/lsn"
)

const s = time.Second

type (
	want   = scenario.Want
	bounds = scenario.Range
)

// story: a leads in term 1 until its lease ends at 10 s, b in term 2 from 15 s on.
// c follows both.
func story() *history.History {
	span := func(from, to time.Duration, role elector.Role, term int,
		leader history.NodeID) history.Span {
		sp := history.Span{From: from, To: to, Process: history.Up, Role: role, Leader: leader}
		sp.Term, sp.MaxTerm = 1, 1
		if term == 2 {
			sp.Term, sp.MaxTerm = 2, 2
		}
		return sp
	}
	a := span(-s, 12*s, elector.Leader, 1, "a")
	a.LeaseUntil = 10 * s
	b := span(15*s, 31*s, elector.Leader, 2, "b")
	b.LeaseUntil = history.Forever
	return &history.History{Quorum: 2, Duration: 30 * s, Sent: []history.Bucket{{At: 0, Count: 60}},
		Lanes: []history.Lane{
			{Node: "a", Voter: true, Spans: []history.Span{a, span(12*s, 31*s, elector.Follower, 1, "")}},
			{Node: "b", Voter: true, Spans: []history.Span{span(-s, 15*s, elector.Follower, 1, ""), b}},
			{Node: "c", Voter: true, Spans: []history.Span{
				span(-s, 12*s, elector.Follower, 1, "a"), span(12*s, 31*s, elector.Follower, 2, "b"),
			}},
		}}
}

func TestExpectationsAreJudged(t *testing.T) {
	all := func(w want) scenario.Expectation {
		return scenario.Expectation{To: 30 * s, Want: w}
	}
	in := func(from, to time.Duration, w want) scenario.Expectation {
		return scenario.Expectation{From: from, To: to, Want: w}
	}
	ids := func(ids ...history.NodeID) []history.NodeID { return ids }
	for name, c := range map[string]struct {
		e    scenario.Expectation
		held bool
		at   time.Duration
		seen string
	}{
		"a leader": {in(0, 10*s, want{Key: "leader", Nodes: ids("a"), Term: 1}), true, 0, "a led"},
		"without a lease": {in(0, 11*s, want{Key: "leader", Nodes: ids("a")}), false, 10 * s,
			"nobody led (a LEADER without lease, b FOLLOWER, c follows a)"},
		"another one": {in(20*s, 30*s, want{Key: "leader", Nodes: ids("a")}), false, 20 * s, "b led"},
		"another term": {in(20*s, 30*s, want{Key: "leader", Nodes: ids("b"), Term: 1}), false, 20 * s,
			"b led in term 2"},
		"a moment": {in(9*s, 9*s, want{Key: "leader", Nodes: ids("a"), Followers: ids("c")}), true,
			9 * s, "a led"},
		"the moment of a change": {in(15*s, 15*s, want{Key: "max_term", Term: 1}), false, 15 * s,
			"highest term 2"},
		"nobody at the moment of a change": {in(15*s, 15*s, want{Key: "no_leader", Nodes: ids("b")}),
			false, 15 * s, "b LEADER"},
		"without a follower": {in(16*s, 30*s, want{Key: "leader", Nodes: ids("b"), Followers: ids("a")}),
			false, 16 * s, "a FOLLOWER"},
		"no leader": {in(12*s, 15*s, want{Key: "no_leader", Nodes: ids("a", "b")}), true, 12 * s,
			"no leader"},
		"a lease that ended": {in(11*s, 12*s, want{Key: "no_leader", Nodes: ids("a")}), true, 11 * s,
			"no leader"},
		"a follower": {in(12*s, 15*s, want{Key: "no_leader"}), false, 12 * s, "c follows b"},
		"within": {in(10*s, 30*s, want{Key: "leader_within", Within: 6 * s}), true, 15 * s,
			"b led after 5s"},
		"within, since long before": {in(9*s, 30*s, want{Key: "leader_within", Within: 6 * s}), true,
			9 * s, "a led already at 9s"},
		"not within": {in(10*s, 30*s, want{Key: "leader_within", Within: 4 * s}), false, 14 * s,
			"nobody led (a FOLLOWER, b FOLLOWER, c follows b)"},
		"changes": {all(want{Key: "leader_changes", Range: bounds{Min: 1, Max: 1}}), true, 0,
			"leader changes: 1"},
		"too few changes": {all(want{Key: "leader_changes", Range: bounds{Min: 2, Max: 9}}), false, 0,
			"leader changes: 1"},
		"the highest term": {all(want{Key: "max_term", Term: 1}), false, 0, "highest term 2"},
		"availability": {all(want{Key: "availability", Range: bounds{Min: 0.8, Max: 1}}), true,
			0, "availability 83.33 %"},
		"messages": {all(want{Key: "messages_per_second", Range: bounds{Max: 1}}), false, 0,
			"2.0 messages a second"},
	} {
		held, at, seen := judge(story(), c.e)
		require.Equal(t, c.held, held, name)
		require.Equal(t, c.at, at, name)
		require.Equal(t, c.seen, seen, name)
	}
}

// recorded is the story in which a and b voted, until b wrote another value and c was added at
// 20 s; c shows nothing newer than the first record.
func recorded() *history.History {
	h := story()
	one, two := lsn.LSN{Term: 1, Counter: 1}, lsn.LSN{Term: 2, Counter: 1}
	h.Records = []history.Record{{LSN: one, Value: "first", Voters: []history.NodeID{"a", "b"}},
		{LSN: two, Value: "second", Voters: []history.NodeID{"a", "b", "c"}}}
	for i := range h.Lanes {
		l := &h.Lanes[i]
		for k := range l.Spans {
			l.Spans[k].Shown = one
		}
		if last := &l.Spans[len(l.Spans)-1]; l.Node == "b" {
			later := *last
			last.To, later.From, later.Shown = 20*s, 20*s, two
			l.Spans = append(l.Spans, later)
		}
	}
	h.Lanes[1].Transitions = []history.Transition{{At: 15 * s,
		Transition: elector.Transition{To: elector.Leader, Term: 2}}}
	h.Marks = []history.Mark{{At: 5 * s, Text: "publish first"},
		{At: 8 * s, Text: "add-voter d", Note: "nobody leads"}}
	return h
}

func TestExpectationsOfTheRecordAreJudged(t *testing.T) {
	ids := func(ids ...history.NodeID) []history.NodeID { return ids }
	for name, c := range map[string]struct {
		from, to time.Duration
		want     want
		held     bool
		at       time.Duration
		seen     string
	}{
		"a value": {0, 20 * s, want{Key: "record", Value: "first", Nodes: ids("a", "c")}, true, 0,
			"record 1.1, first"},
		"another value": {0, 21 * s, want{Key: "record", Value: "first"}, false, 20 * s,
			"record 2.1, second"},
		"not shown": {20 * s, 30 * s, want{Key: "record", Value: "second", Nodes: ids("b", "c")}, false,
			20 * s, "c shows record 1.1, first"},
		"voters": {20 * s, 30 * s, want{Key: "voters", Nodes: ids("c", "b", "a")}, true, 20 * s,
			"voters a, b, c"},
		"too many voters": {0, 30 * s, want{Key: "voters", Nodes: ids("b", "a")}, false, 20 * s,
			"voters a, b, c"},
		"refused": {0, 30 * s, want{Key: "refused", Do: "add-voter"}, true, 8 * s,
			"add-voter d: nobody leads"},
		"done": {0, 30 * s, want{Key: "refused", Do: "publish"}, false, 0, "publish first was done"},
		"not asked": {9 * s, 30 * s, want{Key: "refused", Do: "add-voter"}, false, 9 * s,
			"nothing was asked"},
		"no leader": {0, 15 * s, want{Key: "not_elected", Nodes: ids("b")}, true, 0,
			"none of them was elected"},
		"was elected": {10 * s, 30 * s, want{Key: "not_elected", Nodes: ids("c", "b")}, false, 15 * s,
			"b was elected in term 2"},
	} {
		held, at, seen := judge(recorded(), scenario.Expectation{From: c.from, To: c.to, Want: c.want})
		require.Equal(t, c.held, held, name)
		require.Equal(t, c.at, at, name)
		require.Equal(t, c.seen, seen, name)
	}
}

func TestARunHoldsIfEverythingDoes(t *testing.T) {
	sc := &scenario.Scenario{About: "a test", Expect: []scenario.Expectation{
		{Text: "one change", To: 30 * s,
			Want: want{Key: "leader_changes", Range: bounds{Min: 1, Max: 1}}},
	}}
	r := New(sc, story())
	require.True(t, r.Held())
	require.Equal(t, []Verdict{{Text: "one change", Seen: "leader changes: 1", To: 30 * s,
		Held: true}}, r.Verdicts)
	r.History.Broken = []string{"I1"}
	r.History.Problems = []string{"a node did not start"}
	r.Verdicts[0].Held = false
	require.Equal(t, 3, r.Failures())
	require.False(t, r.Held())
}
